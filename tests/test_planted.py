"""The planted bugs still apply, so that ``make planted`` means what it says."""

from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.bugs import BUGS, Bug

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_applies(bug: Bug) -> None:
    text = (ROOT / bug.file).read_text()
    assert text.count(bug.old) == 1
    assert bug.old != bug.new
    if bug.file.endswith(".py"):  # what cannot be read would fail any test
        compile(text.replace(bug.old, bug.new), bug.file, "exec")
    kind, _, rest = bug.tests.partition(" ")
    assert kind in ("cargo", "pytest")
    for word in rest.split():
        if word.startswith("tests/"):
            assert (ROOT / word.split("::")[0]).exists(), word
    _, _, wish = rest.partition(" -k ")
    if wish:
        Expression.compile(wish)


def test_names_are_different() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
