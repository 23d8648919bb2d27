"""What is expected of a run before it is paid for, and what would help."""

import warnings

import pytest

import silograph as sg
from silograph.errors import LedgerWarning, UselessAnswerWarning
from silograph.estimators.reference import guess
from silograph.local.drive import Traffic
from silograph.methods.baseline.noise import BaselineNoise
from silograph.methods.forecast import USELESS, Forecast, forecast
from silograph.methods.planner import plan_options
from silograph.methods.prediction import Question, _report_weights

OUTLINE = guess(500, cycles=False)


@pytest.mark.parametrize("way", ["feat", "feat+", "sealed", "baseline"])
def test_as_the_planner_says(way: str) -> None:
    asked = Question("triangles", 1.0, 4, 1)
    options = [o for o in plan_options(OUTLINE, asked).options if o.label.split()[0] == way]
    on_pairs = [o.relative for o in options if "fold" not in o.arguments]
    assert forecast(OUTLINE, asked, way).relative == min(on_pairs)


def test_help_is_what_the_planner_expects() -> None:
    asked = Question("triangles", 0.3, 4, 1)
    found = forecast(OUTLINE, asked, "feat", "masked")
    assert found.useless
    assert found.helps
    assert any(text.startswith("sealed with δ = 1e-9 (") for text in found.helps)
    more = next(text for text in found.helps if text.startswith("ε = "))
    epsilon = float(more.split()[2])
    better = forecast(OUTLINE, Question("triangles", epsilon, 4, 1), "feat", "masked").relative
    assert better is not None
    assert better <= 0.25
    assert "no usable answer is expected" in found.warning


def test_noise_is_chosen_once_for_each_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """People wait for a forecast. A range is tried at many places, and its noise is the same."""
    chosen, choose = [], BaselineNoise.choose

    def counted(epsilon: float, silos: int, collusion: int = 0) -> BaselineNoise:
        chosen.append(epsilon)
        return choose(epsilon, silos, collusion)

    monkeypatch.setattr(BaselineNoise, "choose", counted)
    _report_weights.cache_clear()
    assert forecast(OUTLINE, Question("edges", 0.0123, 4, 1), "baseline").relative
    assert len(chosen) == len(set(chosen))


def test_a_range_is_said_and_what_is_likely_decides() -> None:
    asked = Question("edges", 1.0, 4, 1)
    assert not Forecast(asked, USELESS, None, span=(USELESS / 2, 4 * USELESS)).useless
    found = Forecast(asked, 2.0, None, span=(0.3, 9.0))
    assert "about 200 % of the answer, in a range of 30–900 %" in found.warning
    assert Forecast(asked, None, None).warning == ""


def test_python_warns_and_asks_who_wants_to_be_asked() -> None:
    silos = sg.split(sg.clustered_power_law(100, seed=1), 4)
    federation = sg.Federation.simulate(silos)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LedgerWarning)
        with pytest.warns(UselessAnswerWarning, match="What would help: "):
            federation.count("triangles", "feat", epsilon=0.1)
        seen: list[Forecast] = []

        def no(expected: Forecast) -> None:
            seen.append(expected)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            federation.count("triangles", "feat", epsilon=0.1, confirm=no)
        with pytest.raises(RuntimeError):
            federation.collect(3.0, confirm=no)
    assert [each.useless for each in seen] == [True, False]
    assert all(each.cost is not None and each.cost.sent > 0 for each in seen)


@pytest.mark.filterwarnings("ignore::silograph.errors.LedgerWarning")
@pytest.mark.parametrize(("silos", "epsilon"), [(4, 1.0), (4, 3.0), (6, 3.0)])
def test_a_committee_sends_what_is_said(silos: int, epsilon: float) -> None:
    """The fewer places a coin has, the less is sent."""
    counted, seen = Traffic(), list[Forecast]()
    fed = sg.Federation.simulate(sg.split(sg.clustered_power_law(1500, seed=1), silos))
    fed._record = counted
    fed.collect(epsilon, "committee", progress=False, confirm=seen.append)
    sent = [sum(up for up, _ in counted.of(place).values()) for place in range(4)]
    assert seen[0].cost is not None
    assert seen[0].cost.sent == pytest.approx(max(sent), rel=0.03)
