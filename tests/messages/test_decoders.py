"""Bytes that nobody meant, for everything that reads bytes of another party or of a file: only the
project's own errors come out, and no number inside them decides how much memory is taken.

Decoders with such tests beside their other ones: control messages, audit trails, identity files and
rosters (``tests/runtime``), studies (``tests/methods``), the masked and the ElGamal union
(``tests/protocol``), and the Rust core's (``crates/core/tests/decoders``).
"""

import gzip
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph import _core
from silograph.errors import (
    EnvelopeError,
    PayloadError,
    ProtocolError,
    ReleaseError,
    UniverseError,
)
from silograph.estimators.release import Release
from silograph.graph.bits import triangle_bytes
from silograph.graph.universe import NodeUniverse
from silograph.messages.envelope import (
    EVERYONE,
    Envelope,
    Outgoing,
    open_envelope,
    peek,
    seal,
)
from silograph.messages.identity import COORDINATOR, pack, unpack
from silograph.methods.committee.rounds import SECRET_ROUNDS
from silograph.methods.featplus import noisy_vectors, shared_view
from silograph.methods.featplus.method import settle_featplus
from silograph.methods.featplus.rounds import FeatPlusTerms, Shared
from silograph.methods.sealed import rounds as sealed_tables
from tests.messages.test_envelope import BINDING, sealed
from tests.methods.committee.run import COMMITTEES
from tests.methods.featplus.test_noisy_vectors import NumberRun
from tests.methods.featplus.test_shared_view import CONTENT, Showing
from tests.methods.masked.run import digits_of_a_word, elements
from tests.methods.sealed.run import SealedRun, bounded, parameters

HUGE = [2**64 - 1, 2**64 - 2, 2**63, 2**63 + 1, 2**32 + 1, 2**40]

#: The same inputs in every run.
few = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
many = settings(few, max_examples=200)


def altered(data: st.DataObject, valid: bytes) -> bytes:
    """A valid encoding with a few bytes changed, and perhaps cut or lengthened."""
    raw = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    return bytes(raw) + data.draw(st.binary(max_size=3))


def receive(machine: Any, raw: bytes) -> list[Outgoing]:
    """What a machine answers; a refusal is one of the protocol's errors and changes no state."""
    before = machine.state
    try:
        found: list[Outgoing] = machine.receive(raw)
    except ProtocolError:
        assert machine.state is before
        return []
    return found


class TestWire:
    @many
    @given(st.binary(max_size=120), st.integers(0, 5), st.none() | st.just([4] * 5))
    def test_any_bytes(self, content: bytes, count: int, limits: list[int] | None) -> None:
        try:
            fields = unpack(content, count, limits)
        except EnvelopeError:
            return
        assert pack(*fields) == content
        assert len(fields) == count

    @many
    @given(st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.data())
    def test_changed_bytes(self, fields: list[bytes], data: st.DataObject) -> None:
        content = pack(*fields)
        assert unpack(content, len(fields)) == fields
        raw = altered(data, content)
        try:
            found = unpack(raw, len(fields))
        except EnvelopeError:
            return
        assert pack(*found) == raw

    @pytest.mark.parametrize("length", HUGE)
    def test_a_length_takes_no_memory(self, length: int) -> None:
        with pytest.raises(EnvelopeError, match="truncated"):
            unpack(struct.pack("<Q", length) + b"few", 1)


class TestEnvelope:
    @many
    @given(st.binary(max_size=300))
    def test_any_bytes(self, raw: bytes) -> None:
        for read in (peek, lambda raw: open_envelope(BINDING, raw, receiver=0)):
            with pytest.raises(EnvelopeError):
                read(raw)

    @many
    @given(st.lists(st.binary(max_size=70), min_size=6, max_size=6), st.data())
    def test_any_fields(self, fields: list[bytes], data: st.DataObject) -> None:
        valid = unpack(sealed(), 7)
        kept = data.draw(st.sets(st.integers(1, 6)))
        chosen = [valid[i] if i == 0 or i in kept else fields[i - 1] for i in range(7)]
        raw = pack(*chosen)
        if chosen != valid:
            with pytest.raises(ProtocolError):
                open_envelope(BINDING, raw, receiver=COORDINATOR)

    @many
    @given(st.data())
    def test_changed_bytes(self, data: st.DataObject) -> None:
        raw = altered(data, sealed())
        if raw != sealed():
            with pytest.raises(ProtocolError):
                open_envelope(BINDING, raw, receiver=COORDINATOR)


#: Names of rounds and of what parties do by themselves, in these methods.
TABLES = (
    sealed_tables.SEALED_PARTY_STEPS, sealed_tables.SEALED_COORDINATOR_STEPS,
    noisy_vectors.SILO_STEPS, noisy_vectors.COORDINATOR_STEPS,
    shared_view.SILO_STEPS, shared_view.COORDINATOR_STEPS,
)  # fmt: skip
NAMES = st.sampled_from(
    [*sorted({event for table in TABLES for _, event in table}), "", "another round"]
)
SEQUENCES = st.integers(0, 30) | st.sampled_from([2**16, 2**32 - 1])


class TestNumbersAndBroadcast:
    @many
    @given(st.binary(max_size=40) | st.binary(min_size=96, max_size=96), NAMES, SEQUENCES)
    def test_any_numbers(self, payload: bytes, name: str, sequence: int) -> None:
        run = NumberRun()
        for place in (0, 1, COORDINATOR):
            receive(run.coordinator, run.forged(name, place, payload, sequence))
        if run.coordinator.state.name == "DONE":
            vectors = run.coordinator.result()
            wide = [b"".join(x.to_bytes(32, "little", signed=True) for x in v) for v in vectors]
            assert wide == [payload, payload]

    @many
    @given(st.binary(max_size=110) | st.just(bytes(100)), NAMES, SEQUENCES, st.booleans())
    def test_any_broadcast(self, payload: bytes, name: str, sequence: int, shown: bool) -> None:
        run = Showing()
        if shown:
            run.seen(run.show(CONTENT))
        for place in (COORDINATOR, 1):
            envelope = Envelope(name, place, EVERYONE, sequence, payload)
            assert receive(run.silos[0], run.forged(place, envelope)) == []
            assert receive(run.coordinator, run.forged(place, envelope)) == []


PLANS = [
    settle_featplus("triangles", None, local, "paper", 3.0, 2, 1, "clear", 13, bound=bound)
    for local, bound in (("paper", None), ("gradient", None), ("gradient", 2.0))
]


class TestShared:
    @pytest.mark.slow
    @many
    @given(st.sampled_from(PLANS), st.data())
    def test_any_content(self, plan: FeatPlusTerms, data: st.DataObject) -> None:
        size = triangle_bytes(plan.n)
        bound = st.sampled_from([0.0, 2.0, 5e-324]) | st.floats(width=64)
        places = st.sampled_from([0, 1]) | st.sampled_from([0, 1, 2, 255])
        owners = st.lists(places, min_size=plan.n, max_size=plan.n).map(bytes)
        whole = st.tuples(
            bound.map(lambda x: struct.pack("<d", x)),
            owners,
            st.binary(min_size=size, max_size=size),
        ).map(b"".join)
        content = data.draw(whole | st.binary(max_size=60))
        try:
            found = Shared.read(plan, content)
        except PayloadError:
            return
        pairs = plan.n * (plan.n - 1) // 2
        spare = int.from_bytes(content[-size:], "little") & (1 << pairs) - 1
        assert found.content == content[:-size] + spare.to_bytes(size, "little")
        assert set(found.owners.tolist()) <= {0, 1}

    @pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.local)
    def test_the_first_owner_who_is_no_silo(self, plan: FeatPlusTerms) -> None:
        bound = struct.pack("<d", 2.0 if plan.local == "gradient" else 0.0)
        graph = bytes(triangle_bytes(plan.n))
        for owner in (0, plan.union.silos - 1):
            assert Shared.read(plan, bound + bytes([owner] * plan.n) + graph)
        with pytest.raises(PayloadError, match="an owner is not one of"):
            Shared.read(plan, bound + bytes([plan.union.silos] * plan.n) + graph)


FIVE = COMMITTEES["five silos"]


def until(name: str) -> SealedRun:
    """A run in which nothing of a round is delivered: everyone waits for it."""
    given = parameters(FIVE, 13, bounded(13))
    return SealedRun(
        FIVE, [1, 0, 2, 0, 4], given=given, change=lambda m: [m.raw] if m.name[0] != name else []
    ).go()


@pytest.fixture(scope="module", params=["key", "confirms", "seed", "check", "joint", "tell", "sum"])
def run(request: pytest.FixtureRequest) -> SealedRun:
    return until(request.param)


class TestSealed:
    """Signed by those who may send them, and encrypted with the right keys where they are."""

    @few
    @given(st.lists(st.tuples(NAMES, SEQUENCES, st.binary(max_size=60)), max_size=8))
    def test_any_payload(self, run: SealedRun, messages: list[tuple[str, int, bytes]]) -> None:
        ways = [(COORDINATOR, 0), (1, 0), (4, 0), (1, COORDINATOR), (4, COORDINATOR), (0, 4)]
        for name, sequence, payload in messages:
            for sender, receiver in ways:
                envelope = Envelope(name, sender, receiver, sequence, payload)
                raw = seal(run.binding, run.keys[sender], envelope)
                assert receive(run.machine(receiver), raw) == []

    @pytest.mark.parametrize("name", ["all keys", "start", "make", "authorise", "all seeds"])
    @pytest.mark.parametrize("sender", [COORDINATOR, 1])
    def test_what_a_party_does_by_itself_is_no_message(
        self, run: SealedRun, name: str, sender: int
    ) -> None:
        for receiver in (0, 4) if sender == COORDINATOR else (0, 4, COORDINATOR):
            envelope = Envelope(name, sender, receiver, 0, bytes(32))
            with pytest.raises(ProtocolError, match="no such message"):
                run.machine(receiver).receive(seal(run.binding, run.keys[sender], envelope))

    @pytest.mark.whole
    @few
    @given(st.data())
    def test_any_decrypted_payload(self, data: st.DataObject) -> None:
        """From a member and from a silo outside, to a member and to the coordinator."""
        run = until(data.draw(st.sampled_from(["match", "input", "check", "joint", "tell", "sum"])))
        sizes = st.sampled_from([0, 2, 3, 8, 13 * 3, 16, 32, 64 * 3, 64 * 3 + 32])
        payloads = sizes.flatmap(lambda size: st.binary(min_size=size, max_size=size))
        entries = st.tuples(st.sampled_from(SECRET_ROUNDS), st.integers(0, 40), payloads)
        for name, sequence, payload in data.draw(st.lists(entries, max_size=12)):
            for sender, receiver in ((1, 0), (2, 0), (4, 0), (1, COORDINATOR), (4, COORDINATOR)):
                lines = run.machine(sender)._lines
                plain = Envelope(name, sender, receiver, sequence, payload)
                assert lines is not None
                raw = seal(run.binding, run.keys[sender], lines.close(plain))
                receive(run.machine(receiver), raw)


#: Values of every kind that JSON has, and those that numbers of a header could be.
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([-12, 13, 13.0, 10**400, *HUGE])
    | st.sampled_from(["1/0", "2/3", "1/3", "1e9", "-1/3", "0.5", " 1/3", "١/٣", "1_0/3"])
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
HEADER: dict[str, Any] = {
    "n": 13,
    "p11": "2/3",
    "p01": "1/3",
    "universe": "ab" * 32,
    "provenance": {"method": "draw", "protocol": "clear", "silos": 2, "collusion": 0, "run": ""},
    "views": [{"name": "published", "epsilon": 1.0, "delta": 0.0, "claimed": True}],
    "losses": {"0": 1.0, "1": "unbounded"},
}


def release_of(header: bytes, triangle: bytes = bytes(16)) -> bytes:
    """A release file with a right checksum, whatever is in it."""
    content = struct.pack("<16sII", b"silograph.releas", 2, len(header)) + header + triangle
    return content + hashlib.sha256(content).digest()


class TestReleaseFile:
    def refused(self, path: Path, content: bytes) -> bool:
        path.write_bytes(content)
        try:
            Release.load(path)
        except ReleaseError as error:
            return str(error).startswith(f"{path}: the release is ")
        return False

    def test_the_header_itself_is_right(self, tmp_path: Path) -> None:
        assert not self.refused(tmp_path / "r", release_of(json.dumps(HEADER).encode()))

    @many
    @given(name=st.sampled_from([*HEADER, "silos", "epsilon", "more"]), value=VALUES)
    def test_any_value(self, tmp_path: Path, name: str, value: object) -> None:
        header = json.loads(json.dumps(HEADER))
        inner = {"silos": header["provenance"], "epsilon": header["views"][0]}
        inner.get(name, header)[name] = value
        self.refused(tmp_path / "r", release_of(json.dumps(header).encode()))

    @many
    @given(header=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
    def test_any_header(self, tmp_path: Path, header: bytes) -> None:
        assert self.refused(tmp_path / "r", release_of(header))

    @pytest.mark.parametrize(
        "change",
        [
            {"p11": "1/0"},
            {"p11": "1e999999999"},
            {"p11": float("inf")},
            {"n": -12},
            {"provenance": {}},
            {"provenance": {"another": 1}},
            {"views": [{"name": "published", "epsilon": 10**400}]},
            *({"n": n} for n in HUGE),
        ],
        ids=str,
    )
    def test_values_that_ask_for_more(self, tmp_path: Path, change: dict[str, object]) -> None:
        header = json.dumps(HEADER | change).encode()
        assert self.refused(tmp_path / "r", release_of(header))

    @pytest.mark.parametrize("header", [b"[" * 10**5, b'{"n":' * 10**5], ids=["lists", "objects"])
    def test_brackets_without_end(self, tmp_path: Path, header: bytes) -> None:
        assert self.refused(tmp_path / "r", release_of(header))


class TestUniverseFile:
    CONTENT = st.binary(max_size=200) | st.lists(
        st.sampled_from([b"1", b"a", b",", b'"', b"\t", b"\n", b"\r", b" ", b"id", b"\xff", b"\0"]),
        max_size=40,
    ).map(b"".join)

    def load(self, path: Path, content: bytes) -> NodeUniverse | None:
        path.write_bytes(content)
        try:
            return NodeUniverse.from_file(path)
        except UniverseError:
            return None

    @few
    @given(content=CONTENT, name=st.sampled_from(["u.txt", "u.csv", "u.tsv", "u.csv.gz"]))
    def test_any_bytes(self, tmp_path: Path, content: bytes, name: str) -> None:
        for raw in (content, b"# silograph-universe v1 " + content, b"\x1f\x8b" + content):
            found = self.load(tmp_path / name, raw)
            assert found is None or len(found.ids) == len(found) > 0
        self.load(tmp_path / name, gzip.compress(content))

    @few
    @given(data=st.data())
    def test_changed_bytes(self, tmp_path: Path, data: st.DataObject) -> None:
        """A universe carries its digest: a change makes another file, or none."""
        universe, path = NodeUniverse(["ada", "bob", "7"]), tmp_path / "u.txt"
        universe.save(path)
        content = path.read_bytes()
        assert self.load(path, content) == universe
        raw = altered(data, content)
        found = self.load(path, raw)
        same = raw.startswith(b"# silograph-universe ")
        assert found is None or found == universe or not same

    @pytest.mark.parametrize("n", ["9999999999", "99999999999999999999"])
    def test_a_number_takes_no_memory(self, tmp_path: Path, n: str) -> None:
        first = f"# silograph-universe v1 n={n} strip=false case=none sha256={'0' * 64}\n"
        with pytest.raises(UniverseError, match="damaged"):
            NodeUniverse.from_file(self.written(tmp_path / "u.txt", first + "a\n"))

    def written(self, path: Path, text: str) -> Path:
        path.write_text(text)
        return path


class TestBindings:
    """Lengths that are compared where Python hands bytes to Rust."""

    @pytest.mark.parametrize("size", HUGE)
    def test_a_number_takes_no_memory(self, size: int) -> None:
        count, numbers = _core.CommitteeCount(1, 13, 3, True), _core.CommitteeNumbers(1, 3, 64)
        for raw in (b"", bytes(8), bytes(16)):
            for call in (
                lambda raw=raw: _core.rows_from_triangle(size, raw),
                lambda: count.add(0, size, numbers),
                lambda: count.add(size, 5, numbers),
                lambda: numbers.add(size, numbers),
                lambda: count.contract(0, size),
            ):
                with pytest.raises((ValueError, RuntimeError), match=r"there (is|are)|borrowed"):
                    call()

    @many
    @given(st.binary(max_size=300), st.integers(1, 100), st.integers(1, 8))
    def test_any_numbers(self, raw: bytes, count: int, width: int) -> None:
        numbers = _core.CommitteeNumbers(1, width, count)
        parts = _core.CommitteeParts(1, bytes(32), 0, count, width)
        four = [raw, bytes(32), raw, bytes(32)]
        for call in (
            lambda: numbers.learn(bytes(32), 0, raw, bytes(32)),
            lambda: _core.committee_opened_numbers(bytes(32), 0, count, width, four),
        ):
            with pytest.raises(ValueError):  # noqa: PT011 - a wrong size, or two that disagree
                call()
        if len(raw) == count * width:
            parts.take(0, raw)
        else:
            with pytest.raises(ValueError, match="wrong size"):
                parts.take(2, raw)

    @many
    @given(st.data(), st.integers(2, 65_536) | st.integers(2, 40), st.integers(1, 130))
    def test_any_packed_vector(self, data: st.DataObject, q: int, pairs: int) -> None:
        """One encoding of every vector: all other bytes are refused and change nothing."""
        digits = digits_of_a_word(q)
        words, rest = -(-pairs // digits), (pairs - 1) % digits + 1
        most = [q**digits - 1] * (words - 1) + [q**rest - 1]
        edges = [st.sampled_from([0, 1, m - 1, m, m + 1, 2**32 - 1]) for m in most]
        vector = data.draw(st.tuples(*edges))
        raw = b"".join(min(word, 2**32 - 1).to_bytes(4, "little") for word in vector)
        raw = data.draw(st.sampled_from([raw, raw, raw[:-1], raw[:-4], raw + bytes(4)]))
        total = _core.MaskedSum(q, pairs)
        sent = np.frombuffer(raw, dtype="<u4") if len(raw) == 4 * words else None
        if sent is not None and (sent <= most).all():
            total.add(raw)
            assert total.sums() == raw
            bits = np.unpackbits(np.frombuffer(total.open(), dtype=np.uint8), bitorder="little")
            assert (bits[:pairs] == (elements(raw, q, pairs) != 0)).all()
            assert not bits[pairs:].any()
        else:
            with pytest.raises(ValueError, match=r"expected|digits below the modulus"):
                total.add(raw)
            assert total.sums() == bytes(4 * words)
