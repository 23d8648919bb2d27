"""The table of elliptic curves: what is opened, what a row says, what is measured and scaled."""

import ctypes.util
import importlib
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources

import pytest

from reproduction import elliptic_curves, peer_libraries
from reproduction.elliptic_curves import Own, draw, libraries, measure
from reproduction.peer_libraries import PEERS, SILOS, flags, open_union
from silograph.errors import ArgumentError, CryptoError

KEYS = {
    "experiment", "library", "version", "elements", "seconds", "per_element", "scaled",
    "operation", "curve", "measured", "repetitions", "overhead",
}  # fmt: skip


def peer(name: str, *, idle: bool = False) -> peer_libraries.Sodium:
    """The group of a library, or a skip that says why."""
    try:
        return PEERS[name](idle=idle)  # type: ignore[return-value]
    except ArgumentError as absent:
        pytest.skip(str(absent))


@pytest.fixture
def nothing_loaded() -> Iterator[None]:
    elliptic_curves._load.cache_clear()
    yield
    elliptic_curves._load.cache_clear()


@pytest.mark.parametrize("name", PEERS)
class TestPeers:
    def test_the_union_is_opened(self, name: str) -> None:
        group = peer(name)
        every = [bytes((pattern >> silo) & 1 for pattern in range(16)) for silo in range(SILOS)]
        assert open_union(group, every) == flags(every) == [False] + [True] * 15

    def test_cells_are_made_anew(self, name: str) -> None:
        group = peer(name)
        for bit in (0, 1):
            cell = group.fresh(bit)
            half = len(cell) // 2
            for other in (group.fresh(bit), group.renew(cell)):
                assert other[:half] != cell[:half]
                assert other[half:] != cell[half:]
                shares = [group.share(silo, other) for silo in range(SILOS)]
                assert group.opens(other, shares) == bool(bit)

    def test_all_silos_are_needed(self, name: str) -> None:
        group = peer(name)
        cell = group.fresh(1)
        shares = [group.share(silo, cell) for silo in range(SILOS)]
        assert len(set(shares)) == SILOS
        assert group.opens(cell, shares)
        assert not group.opens(cell, shares[:-1])
        assert not group.opens(cell, [*shares[:-1], shares[0]])

    def test_without_the_library_a_small_part_of_the_time_is_left(self, name: str) -> None:
        peer(name)
        row = measure(name, 16, 5.0)
        assert 0 < row["overhead"] < row["per_element"] / 4


@pytest.mark.parametrize("count", [1, 16, 77])
def test_own_curve_opens_the_union(count: int) -> None:
    own, held = elliptic_curves._load("silograph"), draw(count)
    assert isinstance(own, Own)
    assert own.union(held) == flags(held)
    nobody = [bytes(count)] * SILOS
    assert own.union(nobody) == [False] * count


def test_flags_are_drawn_for_every_silo() -> None:
    held = draw(400)
    assert len(held) == SILOS
    assert all(len(own) == 400 and set(own) == {0, 1} for own in held)
    assert len(set(held)) == SILOS


@pytest.mark.parametrize("library", libraries())
def test_rows_are_complete(library: str) -> None:
    if library in PEERS:
        peer(library)
    row = measure(library, 10, 1.0)
    assert set(row) == KEYS
    assert (row["library"], row["elements"], row["measured"]) == (library, 10, 10)
    assert row["scaled"] is False
    assert row["seconds"] == pytest.approx(10 * row["per_element"])
    # From a tenth of a mult of the quickest to a hundred times what the paper's slowest takes.
    assert 1e-6 < row["per_element"] < 0.5
    assert row["version"][0].isdigit()


def test_a_small_budget_is_kept_and_the_rest_scaled() -> None:
    row = measure("silograph", 10**6, 0.1)
    assert row["scaled"] is True
    assert 64 <= row["measured"] < 10**5
    assert row["seconds"] == pytest.approx(10**6 * row["per_element"])


class Slow:
    """A library that takes 2 ms of wall time and 1 ms of work for a flag, on a clock of its own."""

    version, curve, how = "1", "none", "slowly"

    def __init__(self) -> None:
        self.wall = self.work = 0.0
        self.each = 0.001
        self.blocks: list[int] = []

    def union(self, held: Sequence[bytes]) -> list[bool]:
        self.blocks.append(len(held[0]))
        self.wall += 0.002 * len(held[0])
        self.work += self.each * len(held[0])
        return flags(held)

    def overhead(self) -> float:
        return 0.0

    def perf_counter(self) -> float:
        return self.wall

    def process_time(self) -> float:
        return self.work


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made = Slow()
    monkeypatch.setattr(elliptic_curves, "_load", lambda _: made)
    monkeypatch.setattr(elliptic_curves, "time", made)
    return made


class TestBudget:
    @pytest.mark.parametrize("budget", [0.2, 0.5, 1.0, 3.0])
    def test_no_more_is_measured_than_fits(self, slow: Slow, budget: float) -> None:
        row = measure("silograph", 10_000, budget)
        assert slow.wall <= budget
        # Blocks double, so that not less than a third of what would fit is measured.
        assert slow.wall > budget / 4
        assert row["measured"] == sum(slow.blocks)
        assert row["scaled"] is True
        assert row["per_element"] == pytest.approx(0.001)
        assert row["seconds"] == pytest.approx(10.0)

    def test_what_just_fits_is_not_scaled(self, slow: Slow) -> None:
        row = measure("silograph", 100, 0.2001)
        assert slow.blocks == [64, 36]
        assert (row["scaled"], row["measured"], row["repetitions"]) == (False, 100, 1)

    def test_one_block_is_measured_whatever_the_budget(self, slow: Slow) -> None:
        assert measure("silograph", 1000, 0.001)["measured"] == 64

    def test_the_best_of_several_counts(
        self, slow: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:  # fmt: skip
        paces = iter([0.003, 0.002, 0.005, 0.004, 0.003])
        union = slow.union

        def paced(held: Sequence[bytes]) -> list[bool]:
            slow.each = next(paces)
            return union(held)

        monkeypatch.setattr(slow, "union", paced)
        row = measure("silograph", 10, 60.0)
        assert row["repetitions"] == 5
        assert row["per_element"] == pytest.approx(0.002)

    def test_rounds_stay_within_the_budget(self, slow: Slow) -> None:
        row = measure("silograph", 50, 0.35)
        assert (row["repetitions"], slow.wall) == (3, pytest.approx(0.3))


def test_a_wrong_union_is_no_result(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "union", lambda held: [not flag for flag in flags(held)])
    with pytest.raises(CryptoError, match="not the union"):
        measure("silograph", 10, 1.0)


class TestAbsent:
    @pytest.mark.parametrize(("library", "wheel"), [("libsodium", "rbcl"), ("mcl", "mclbn256")])
    def test_a_wheel(
        self,
        library: str,
        wheel: str,
        nothing_loaded: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def refuse(name: str) -> None:
            raise ImportError(name)

        monkeypatch.setattr(importlib, "import_module", refuse)
        row = measure(library, 10, 1.0)
        assert row == {
            "experiment": "curves",
            "library": library,
            "elements": 10,
            "reason": f"{wheel} is not installed: pip install {wheel}",
        }

    @pytest.mark.parametrize("name", [None, "libm.so.6", "no-such-library.so"])
    def test_openssl(
        self, name: str | None, nothing_loaded: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ctypes.util, "find_library", lambda _: name)
        row = measure("openssl", 10, 1.0)
        assert "libcrypto" in row["reason"]

    def test_a_wheel_without_its_library(
        self, nothing_loaded: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(importlib, "import_module", lambda _: ctypes)
        assert "no library" in measure("mcl", 10, 1.0)["reason"]


@pytest.mark.parametrize(
    ("library", "elements", "budget"),
    [("nacl", 10, 1.0), ("silograph", 0, 1.0), ("silograph", 10, 0.0)],
)
def test_nonsense_is_refused(library: str, elements: int, budget: float) -> None:
    with pytest.raises(ArgumentError):
        measure(library, elements, budget)


def test_parameters_make_every_cell_of_the_table() -> None:
    file = resources.files("reproduction") / "parameters" / "curves.toml"
    parameters = tomllib.loads(file.read_text(encoding="utf-8"))
    assert parameters["kind"] == "timing"
    found = elliptic_curves.cases(parameters)
    asked = {(case["library"], case["elements"]) for case in found}
    assert asked == {(name, 10**power) for name in libraries() for power in range(1, 7)}
    assert len(found) == 24
    # At most so much, in six minutes: three sizes of each library use up their budget.
    assert sum(case["budget_seconds"] for case in found) <= 24 * 20
    quick = elliptic_curves.cases({**parameters, **parameters["quick"]})
    assert sum(case["budget_seconds"] for case in quick) <= 2.5
