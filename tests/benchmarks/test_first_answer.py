"""How many commands the manual needs to the first deployed answer (``make first-answer``)."""

import pytest

from benchmarks.first_answer import SILOS, seconds, ways


def test_few_commands() -> None:
    by_hand, invited, up = ways()
    assert len(by_hand.commands) > 20
    assert len(by_hand.files) == 2
    for name in SILOS:
        assert 3 <= invited.parties[name] <= 5, "six with the installation"
    assert 4 <= invited.parties["hub"] <= 7
    assert not invited.files
    assert (len(up.commands), up.files) == (1, {})


@pytest.mark.whole
@pytest.mark.parametrize("way", ways(), ids=lambda way: way.name)
def test_they_lead_to_an_answer(way) -> None:  # type: ignore[no-untyped-def]
    assert seconds(way) < 240
