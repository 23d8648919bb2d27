"""Studies: one form as bytes, nothing else is read; and what plans make of them."""

import contextlib
import dataclasses
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import Fold, NodeUniverse
from silograph.errors import ProtocolError, StudyError
from silograph.messages.envelope import EVERYONE, Envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Member
from silograph.methods.baseline.method import SettledBaseline
from silograph.methods.catalogue import plan_study, settle_study
from silograph.methods.feat.method import SettledFeat
from silograph.methods.study import (
    Index,
    Study,
    StudyMember,
    folded_index,
    open_proposal,
    read_proposal,
)
from tests.support.parties import identities, roster_of

KEYS = identities(3)
ROSTER = roster_of(KEYS, "hub", "silo-{}")
GIVEN: dict[str, Any] = {
    "run": "0f" * 16, "query": "triangles", "method": "feat", "protocol": "masked",
    "epsilon": 3.0, "delta": 0.0, "collusion": 1, "universe": "ab" * 32, "nodes": 100,
    "roster": ROSTER.digest.hex(), "coordinator": "hub",
    "silos": ("silo-1", "silo-2", "silo-3"), "deadline": 1_900_000_000,
}  # fmt: skip
FOUR = (
    *(StudyMember(f"silo-{i}", "silo") for i in (1, 2, 3)),
    StudyMember("notary", "helper"),
)
SEALED = {"method": "sealed", "protocol": "committee", "members": FOUR}
TEXTS = st.text("ab\n é", max_size=5)


def study(**changes: Any) -> Study:
    return Study(**{**GIVEN, **changes})


def test_there_and_back() -> None:
    folded = Index("fold", 100, ("a", "b"), 2, "digits")
    for made in (
        study(query="kstars", k=3, options={"b": 1, "a": "x", "c": 0.5, "d": True}),
        study(purpose="How fast does it spread?\nFor the yearly report.", members=FOUR),
        study(index=folded),
    ):
        assert Study.decode(made.encode()) == made
        assert Study.decode(made.encode()).digest == made.digest


@pytest.mark.parametrize(
    "change",
    [
        {"index": {"kind": "pairs"}}, {"members": FOUR[:3]}, {"members": (*FOUR[:3], FOUR[0])},
        {"members": ("a", "b", "c", "d")}, {"purpose": 3}, {"purpose": "x" * 4001},
        {"purpose": "\x07"}, {"encoding": ""}, {"delta": -0.0}, {"version": 2.0},
        {"query": "Triangles"}, {"method": "feat masked"},
    ],
)  # fmt: skip
def test_new_fields_of_wrong_kinds(change: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        study(**change)


@pytest.mark.parametrize(
    "given",
    [
        ("pairs", 3, (), 0, ""), ("pairs", False, (), 0, ""), ("pairs", 0, (), 0.0, ""),
        ("fold", 1, (), 1, "digits"), ("fold", 100, (), 0, "digits"),
        ("fold", 100, (), 1, ""), ("fold", 100, ("a", "a"), 1, "digits"), ("rows", 0, (), 0, ""),
    ],
)  # fmt: skip
def test_no_index(given: tuple[Any, ...]) -> None:
    with pytest.raises(StudyError):
        Index(*given)


def test_a_member_of_no_kind() -> None:
    with pytest.raises(StudyError):
        StudyMember("x", "dealer")


@pytest.mark.parametrize(
    "change", [{"protocol": "clear"}, {"protocol": "elgamal/printed"}, {"deadline": 0}]
)
def test_what_is_for_one_process_is_never_proposed(change: dict[str, Any]) -> None:
    made = study(**change)
    with pytest.raises(StudyError, match=r"one process|deadline"):
        made.propose(ROSTER, KEYS[3])
    message = Envelope("propose", COORDINATOR, EVERYONE, 0, made.encode())
    with pytest.raises(StudyError, match=r"one process|deadline"):
        open_proposal(seal(made.binding(ROSTER), KEYS[3], message), ROSTER)


def test_golden_bytes() -> None:
    """The format is frozen here: a changed one is another version."""
    assert study().encode() == (
        b'{"collusion":1,"coordinator":"hub","deadline":1900000000,"delta":0.0,"encoding":"packed",'
        b'"epsilon":3.0,"index":{"form":"","groups":0,"hubs":[],"kind":"pairs","sub":0},'
        b'"k":null,"members":[],"method":"feat","nodes":100,"options":{},"protocol":"masked",'
        b'"purpose":"","query":"triangles","roster":"' + ROSTER.digest.hex().encode() + b'",'
        b'"run":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f","silos":["silo-1","silo-2","silo-3"],'
        b'"universe":"' + b"ab" * 32 + b'","version":3}'
    )


def test_a_study_of_the_version_before_is_a_record() -> None:
    """It can be read, and nobody proposes it or takes part in it: its messages were others."""
    made = study(version=2)
    assert Study.decode(made.encode()) == made
    message = Envelope("propose", COORDINATOR, EVERYONE, 0, made.encode())
    raw = seal(made.binding(ROSTER), KEYS[3], message)
    assert read_proposal(raw) == made
    with pytest.raises(StudyError, match=r"format 2; .* takes part in studies of format 3"):
        open_proposal(raw, ROSTER)
    with pytest.raises(StudyError, match="format 3"):
        made.propose(ROSTER, KEYS[3])


@pytest.mark.parametrize("part", dataclasses.fields(Study), ids=lambda part: part.name)
def test_every_field_is_in_the_digest_and_in_the_parameters(part: dataclasses.Field[Any]) -> None:
    changes: dict[str, Any] = {
        "run": "0e" * 16, "query": "edges", "method": "baseline", "protocol": "elgamal/blinded",
        "epsilon": 2.0, "delta": 0.1, "collusion": 2, "universe": "cd" * 32, "nodes": 101,
        "roster": "cd" * 32, "coordinator": "other", "silos": ("silo-1", "silo-2"),
        "deadline": 1_900_000_001, "k": 2, "options": {"x": 1}, "purpose": "flu", "members": FOUR,
        "index": Index("fold", 100, ("a",), 2, "digits"),
    }  # fmt: skip
    if part.name == "version":
        with pytest.raises(StudyError, match="format 1"):
            study(version=1)
        return
    if part.name == "encoding":
        with pytest.raises(StudyError, match="encoding"):
            study(encoding="bare")
        return
    other = study(**{part.name: changes[part.name]})
    assert other.digest != study().digest
    assert other.subject != study().subject


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": 3}, "epsilon"),
        ({"delta": -0.1}, "delta"),
        ({"collusion": -1}, "collusion"),
        ({"collusion": True}, "collusion"),
        ({"run": "0F" * 16}, "run"),
        ({"run": "00"}, "run"),
        ({"universe": "x" * 64}, "universe"),
        ({"nodes": 1}, "nodes"),
        ({"deadline": 1.5}, "deadline"),
        ({"k": 0}, "k must"),
        ({"query": ""}, "query"),
        ({"query": "a\nb"}, "query"),
        ({"silos": ("silo-1",)}, "2 to 64"),
        ({"silos": ("silo-1", "silo-1")}, "different names"),
        ({"options": {"a": [1]}}, "option a"),
        ({"options": {"a": math.nan}}, "option a"),
        ({"coordinator": "x" * 201}, "coordinator"),
    ],
)
def test_what_makes_no_study(change: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study(**change)


class TestDecoding:
    @pytest.mark.parametrize(
        "raw",
        [
            b"", b"[]", b"{}", b"null", b"1", b'"x"', b"\xff", b"[" * 30_000, b"{" * 1000,
            b" " + study().encode(), study().encode() + b" ",
            study().encode().replace(b'"k":null', b'"k":null,"k":null'),
            study().encode().replace(b"3.0", b"3.00"),
            study().encode().replace(b"3.0", b"3e0"),
            study().encode().replace(b"3.0", b"NaN"),
            study().encode().replace(b"1900000000", b"9" * 5000),
            study().encode().replace(b'"k":null', b'"k":null,"z":1'),
            study().encode().replace(b"feat", b"f\\u0065at"),
            b"x" * 40_000,
        ],
        ids=range(19),
    )  # fmt: skip
    def test_other_bytes_are_refused(self, raw: bytes) -> None:
        with pytest.raises(StudyError):
            Study.decode(raw)

    @given(st.binary(max_size=300))
    def test_any_bytes(self, raw: bytes) -> None:
        with pytest.raises(StudyError):
            Study.decode(raw)

    @given(st.integers(0, 500), st.integers(0, 255), st.booleans())
    def test_a_changed_byte(self, place: int, value: int, cut: bool) -> None:
        raw = bytearray(study().encode())
        place %= len(raw)
        if cut:
            del raw[place:]
        else:
            raw[place] = value
        try:
            decoded = Study.decode(bytes(raw))
        except StudyError:
            return
        assert decoded.encode() == bytes(raw)

    @given(
        st.dictionaries(
            st.sampled_from([*GIVEN, "k", "options", "version", "more"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
                lambda inner: (
                    st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
                ),
                max_leaves=5,
            ),
        )
    )
    def test_any_json(self, changes: dict[str, Any]) -> None:
        fields = {**json.loads(study().encode()), **changes}
        raw = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        try:
            decoded = Study.decode(raw)
        except StudyError:
            return
        assert decoded.encode() == raw

    @given(st.binary(max_size=400))
    def test_any_proposal(self, raw: bytes) -> None:
        with pytest.raises((StudyError, ProtocolError)):
            open_proposal(raw, ROSTER)


class TestProposals:
    def test_signed_by_the_coordinator(self) -> None:
        assert open_proposal(study().propose(ROSTER, KEYS[3]), ROSTER) == study()

    @pytest.mark.parametrize("key", [0, 1, 2])
    def test_signed_by_another(self, key: int) -> None:
        with pytest.raises(ProtocolError, match="signature"):
            open_proposal(study().propose(ROSTER, KEYS[key]), ROSTER)

    def test_not_a_proposal(self) -> None:
        message = Envelope("keys", COORDINATOR, EVERYONE, 0, study().encode())
        with pytest.raises(ProtocolError, match="not a proposal"):
            open_proposal(seal(study().binding(ROSTER), KEYS[3], message), ROSTER)

    @pytest.mark.parametrize(
        "change",
        [
            {"roster": "00" * 32},
            {"coordinator": "other"},
            {"silos": ("silo-2", "silo-1")},
            {"silos": ("silo-1", "mallory")},
        ],
    )
    def test_for_another_roster(self, change: dict[str, Any]) -> None:
        with pytest.raises(StudyError):
            study(**change).parties(ROSTER)

    def test_part_of_a_roster(self) -> None:
        members = study(silos=("silo-1", "silo-3")).parties(ROSTER)
        assert [member.name for member in members.silos] == ["silo-1", "silo-3"]
        assert members.digest != ROSTER.digest

    def test_helpers_take_no_part(self) -> None:
        """A roster with helpers is another roster; a study over it has silos alone."""
        helper = Member("notary", Identity(bytes([9] * 32)).public, "Notary & Sons")
        roster = dataclasses.replace(ROSTER, helpers=(helper,))
        with pytest.raises(StudyError, match="another roster"):
            study().parties(roster)
        asked = study(roster=roster.digest.hex())
        assert asked.parties(roster) == ROSTER
        for silos in (("silo-1", "notary"), ("silo-1", "silo-2", "silo-3", "notary")):
            with pytest.raises(StudyError, match="silos that are not in the roster"):
                study(roster=roster.digest.hex(), silos=silos).parties(roster)


class TestPlans:
    def test_what_the_method_says(self) -> None:
        plan = plan_study(study())
        assert isinstance(plan, SettledFeat)
        assert plan.what == "feat masked"
        assert plan.study.subject == study().subject
        assert plan.silos == 3
        assert set(plan.losses) == {0, 1, 2}
        assert plan.losses[1] <= 3.0
        assert plan_study(study(protocol="elgamal")).what == "feat elgamal/blinded"
        assert isinstance(plan_study(study(method="baseline", protocol="")), SettledBaseline)

    @pytest.mark.parametrize(
        "change",
        [
            {"method": "feat+"},
            {"method": "feat+", "epsilon": 0.5},
            {**SEALED},
            {**SEALED, "delta": 1e-9},
            {**SEALED, "query": "clustering", "delta": 1e-9},
            {**SEALED, "query": "kstars", "k": 3},
        ],
    )
    def test_what_a_planner_chooses_is_written_down(self, change: dict[str, Any]) -> None:
        """Every party then computes from what is written, and the proposer's choice is final."""
        drafted = study(**change)
        plan = settle_study(drafted)
        settled = plan.study
        assert settled.options.keys() > drafted.options.keys()
        assert settle_study(settled).study == settled
        assert plan_study(settled).losses == plan.losses
        assert plan.losses[1] <= settled.epsilon
        assert plan.delta <= settled.delta
        assert plan_study(Study.decode(settled.encode())).losses == plan.losses

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"method": "feat+", "options": {"split": "1,2"}}, "three numbers"),
            ({"method": "feat+", "options": {"local": 3}}, "local must be a text"),
            ({"method": "feat+", "protocol": "elgamal/replace", "collusion": 0}, "against silos"),
            ({"method": "sealed"}, "counts in a committee"),
            ({**SEALED, "members": ()}, "does not name the four members"),
            ({**SEALED, "query": "four_cycles"}, "sealed answers"),
            ({**SEALED, "options": {"noise": "no"}}, "committee or shares"),
            (
                {**SEALED, "query": "edges", "options": {"answers": "degrees,triangles"}},
                "edges is answered by edges or degrees, not by",
            ),
            (
                {**SEALED, "query": "kstars", "k": 3, "options": {"answers": "two_stars"}},
                "kstars is answered by degrees, not by",
            ),
            (
                {**SEALED, "delta": 1e-9, "options": {"rule": "second", "degree_share": 1e-13}},
                "degree_share must be from 0.0001 to 0.9999",
            ),
            ({**SEALED, "options": {"answers": "x"}}, "answers must be of edges"),
            ({"delta": 0.1}, "no use for delta"),
            ({"options": {"channel": "1/2,1/4"}}, "for protocol 'clear' only"),
            ({"protocol": "clear", "options": {"channel": "1/0,x"}}, "two fractions"),
            ({"protocol": "clear", "options": {"channel": "1/0,1/2"}}, "denominator of 0"),
            ({"protocol": "clear", "options": {"channel": "1e9999999999,0"}}, "two fractions"),
            ({"options": {"channel": "1e9999999999,0"}}, "for protocol 'clear' only"),
            ({"members": FOUR}, "no committee"),
            ({"protocol": "pigeon"}, "unknown protocol"),
            ({"method": "magic"}, "unknown method"),
            ({"query": "squares"}, "unknown query"),
            ({"query": "kstars"}, "needs k"),
            ({"k": 2}, "nothing else takes it"),
            ({"query": "kstars", "k": 100}, "more than 100 nodes"),
            ({"collusion": 3}, "from 0 to 2"),
            ({"epsilon": 0.0}, "positive, finite"),
            ({"options": {"x": 1}}, "no use for option 'x'"),
            ({"method": "baseline"}, "no protocol to choose"),
            ({"method": "baseline", "protocol": "", "query": "degree_histogram"}, "not answer"),
            ({"method": "baseline", "protocol": "", "options": {"raw": 1}}, "true or false"),
            ({"protocol": "elgamal/replace"}, "collusion=0"),
        ],
    )
    def test_what_cannot_be_done(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(StudyError, match=message):
            plan_study(study(**change))


@pytest.mark.slow
@pytest.mark.parametrize("query", ["triangles", "kstars", "clustering"])
@pytest.mark.parametrize("silos", [3, 64])
@pytest.mark.parametrize("nodes", [40, 4000, 40_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 50.0])
def test_what_a_study_costs_to_judge_is_bounded(
    query: str, silos: int, nodes: int, epsilon: float
) -> None:
    """Whoever signs a study makes every silo compute this."""
    k = 100 if query == "kstars" and nodes > 1000 else 2 if query == "kstars" else None
    asked: dict[str, Any] = {
        "query": query, "k": k, "nodes": nodes, "epsilon": epsilon,
        "silos": tuple(f"silo-{i}" for i in range(silos)),
    }  # fmt: skip
    ways: tuple[dict[str, Any], ...] = (
        {**SEALED, "delta": 1e-9, "options": {"answers": "triangles", "rule": "second"}},
        {**SEALED, "delta": 1e-17, "options": {
            "answers": "degrees,two_stars,triangles", "degree_share": 1e-3, "rule": "largest"}},
        {**SEALED, "options": {"answers": "degrees,two_stars,triangles", "noise": "shares"}},
        {"method": "feat+", "options": {"local": "paper"}},
        {"method": "feat", "protocol": "elgamal"},
        {"method": "baseline", "protocol": ""},
    )  # fmt: skip
    for way in ways:
        began = time.thread_time()  # other threads may still be busy with other tests
        with contextlib.suppress(StudyError):
            plan_study(study(**asked, **way))
        # It takes up to .1 s, and more on a busy core or when Python collects its garbage.
        assert time.thread_time() - began < 0.5, way


@pytest.mark.parametrize("epsilon", [1e8, 1e20, 1e300, 50.1, 1e-7, 5e-324])
def test_an_epsilon_out_of_bounds_is_no_study(epsilon: float) -> None:
    with pytest.raises(StudyError, match="epsilon"):
        study(**SEALED, epsilon=epsilon)


FORM = "strip=0;case=none"
FOLDED = Index("fold", 100, ("a", "b"), 2, FORM)


class TestFolded:
    """Studies that fold their nodes: what they are, what they refuse, and at what cost."""

    def test_bits_and_names(self) -> None:
        made = study(index=FOLDED)
        assert made.bits == 2 * 2 * (100 * 99 // 2 + 2 * 100) + 1 == FOLDED.layout.buckets
        assert made.pairs == 100 * 99 // 2
        assert (made.how, study().how) == ("feat masked folded", "feat masked")
        assert study().bits == study().pairs

    @pytest.mark.parametrize(
        "index",
        [
            FOLDED, Index("fold", 3, (), 1, FORM), Index("fold", 4000, (), 64, "strip=1"),
            Index("fold", 100, ("ß", "日本", "\U0001f600", "a b"), 1, FORM),
            Index("fold", 10, tuple(f"hub {i}" for i in range(20_000)), 1, FORM),
        ],
        ids=range(5),
    )  # fmt: skip
    @pytest.mark.parametrize("nodes", [0, 1, 2, 1 << 31])
    def test_there_and_back(self, index: Index, nodes: int) -> None:
        made = study(index=index, nodes=nodes)
        assert Study.decode(made.encode()) == made
        assert open_proposal(made.propose(ROSTER, KEYS[3]), ROSTER) == made

    def test_golden_bytes(self) -> None:
        assert (
            b'"index":{"form":"strip=0;case=none","groups":100,"hubs":["a","b"],"kind":"fold",'
            b'"sub":2}' in study(index=FOLDED).encode()
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"groups": 2}, "groups"), ({"groups": (1 << 20) + 1}, "groups"),
            ({"groups": True}, "groups"), ({"groups": 100.0}, "groups"),
            ({"groups": 10**400}, "groups"), ({"groups": 1 << 20}, "buckets; at most"),
            ({"sub": 0}, "sub"), ({"sub": 65}, "sub"), ({"sub": 10**30}, "sub"),
            ({"groups": 200_000, "sub": 1}, "buckets; at most"),
            ({"form": ""}, "form"), ({"form": "a\nb"}, "form"), ({"form": 3}, "form"),
            ({"hubs": ("a", "a")}, "the same"), ({"hubs": ("",)}, "a hub"),
            ({"hubs": (3,)}, "a hub"), ({"hubs": ("x" * 201,)}, "a hub"),
            ({"hubs": ("a\tb",)}, "a hub"), ({"hubs": ([],)}, "a hub"),
            ({"hubs": tuple(map(str, range(20_001)))}, "at most 20,000"),
            ({"hubs": tuple(f"{i:0200}" for i in range(5_000))}, "bytes"),
            ({"kind": "rows"}, "pairs or fold"),
        ],
    )  # fmt: skip
    def test_limits(self, change: dict[str, Any], message: str) -> None:
        given = {"kind": "fold", "groups": 100, "hubs": (), "sub": 1, "form": FORM} | change
        began = time.thread_time()
        with pytest.raises(StudyError, match=message):
            Index(**given)
        assert time.thread_time() - began < 0.1

    def test_the_largest_study_can_be_read(self) -> None:
        """Whatever an index allows fits into a study."""
        many = tuple("é" * 20 + f"{i:05}" for i in range(20_000))
        with pytest.raises(StudyError, match="bytes"):
            Index("fold", 100, many, 1, FORM)
        made = study(index=Index("fold", 100, many[:3_500], 1, FORM))
        assert Study.decode(made.encode()) == made

    @pytest.mark.parametrize("nodes", [0, 1])
    def test_no_list_of_nodes_only_if_folded(self, nodes: int) -> None:
        assert study(index=FOLDED, nodes=nodes).nodes == nodes
        with pytest.raises(StudyError, match=r"for folded studies only|nodes must be"):
            study(nodes=nodes)
        for wrong in (-1, (1 << 31) + 1, 2.0, True, None):
            with pytest.raises(StudyError, match="nodes"):
                study(index=FOLDED, nodes=wrong)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"method": "feat+"}, "counts on pairs"),
            ({"method": "baseline", "protocol": ""}, "counts on pairs"),
            ({"method": "hubs", "query": "release"}, "counts on pairs"),
            ({"protocol": "elgamal"}, "counts on pairs"),
            ({"protocol": "elgamal/blinded"}, "counts on pairs"),
            ({"protocol": "elgamal/replace", "collusion": 0}, "counts on pairs"),
            ({"query": "degrees"}, "do not answer degrees"),
            ({"query": "degree_histogram"}, "do not answer"),
            ({"query": "node_triangles"}, "do not answer"),
            ({"query": "kstars", "k": 3}, "k = 1 and 2"),
            ({"query": "kstars"}, "needs k"),
            ({"k": 2}, "nothing else takes it"),
            ({"delta": 0.1}, "no use for delta"),
        ],
    )
    def test_what_does_not_fold(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(StudyError, match=message):
            plan_study(study(index=FOLDED, **change))

    @pytest.mark.parametrize(
        "change",
        [
            {}, {"query": "release"}, {"query": "kstars", "k": 1}, {"query": "four_cycles"},
            {"protocol": "clear"}, {"protocol": "committee", "members": FOUR}, {"nodes": 0},
        ],
    )  # fmt: skip
    def test_what_folds(self, change: dict[str, Any]) -> None:
        plan, same = plan_study(study(index=FOLDED, **change)), plan_study(study(
            **{key: value for key, value in change.items() if key != "nodes"}))  # fmt: skip
        assert plan.losses == same.losses  # folding costs the same
        assert plan.what == same.what

    def test_ids(self) -> None:
        lower = NodeUniverse(["a", "b"], case="lower")
        Index("fold", 9, ("a",), 1, "strip=0;case=lower").check_ids(lower)
        Index().check_ids(lower)
        with pytest.raises(StudyError, match=r"identifiers are 'strip=0;case=none', not"):
            Index("fold", 9, ("a",), 1, FORM).check_ids(lower)
        for hub in ("A", "c", " a"):
            with pytest.raises(StudyError, match="not an identifier of this universe"):
                Index("fold", 9, (hub,), 1, "strip=0;case=lower").check_ids(lower)
        stripped = NodeUniverse.open(strip=True)
        Index("fold", 9, ("anyone",), 1, "strip=1;case=none").check_ids(stripped)
        with pytest.raises(StudyError, match="not an identifier of this universe"):
            Index("fold", 9, (" anyone",), 1, "strip=1;case=none").check_ids(stripped)

    def test_an_index_is_made_in_normal_form(self) -> None:
        universe = NodeUniverse(["ada", "bob"], strip=True, case="lower")
        index = folded_index(Fold(9, [" ADA", "Ada", "bob"]), universe)
        assert (index.hubs, index.form) == (("ada", "bob"), "strip=1;case=lower")
        index.check_ids(universe)
        assert folded_index(Fold.parse("9"), universe).hubs == ()
        with pytest.raises(StudyError, match="'eve' is not in the universe"):
            folded_index(Fold(9, ["eve"]), universe)
        with pytest.raises(StudyError, match="find them first"):
            folded_index(Fold(9, 3), universe)
        with pytest.raises(StudyError, match="a hub"):
            folded_index(Fold(9, [""]), NodeUniverse.open())

    def test_huge_studies_are_judged_at_once(self) -> None:
        """Nothing is computed bucket by bucket."""
        index = Index("fold", 100_000, tuple(map(str, range(20_000))), 2, FORM)
        began = time.thread_time()
        plan = plan_study(study(index=index))
        assert plan.study.bits > 1 << 34
        assert time.thread_time() - began < 0.3
