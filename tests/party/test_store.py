"""The state store: run ids once, secrets wiped, messages frozen, what was taken remembered."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from silograph.errors import StoreError
from silograph.messages.entropy import RunEntropy
from silograph.party.store import Frozen, Name, Store, Taken

RUN = "ab" * 16
SECRET = bytes(range(200, 232))
CHUNK = Name(0xFFFF, "chunk", 0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store.db", "north")
    made.add(RUN, b"proposal")
    return made


def again(store: Store) -> Store:
    """The same file after a restart."""
    store.close()
    return Store(store.path, "north")


def test_durability(store: Store) -> None:
    assert store.settings() == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 2}
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_a_run_id_is_taken_once(store: Store) -> None:
    assert store.add(RUN, b"proposal") is False
    with pytest.raises(StoreError, match="used once"):
        store.add(RUN, b"another")
    store.end(RUN, "done")
    with pytest.raises(StoreError, match="used once"):
        again(store).add(RUN, b"another")


def test_the_secret_is_kept_until_the_end_and_wiped(store: Store) -> None:
    store.accept(RUN, "policy", SECRET)
    store = again(store)
    run = store.run(RUN)
    assert run is not None
    assert run.secret == SECRET
    assert SECRET.hex() not in repr(run)
    assert repr(SECRET) not in repr(run)
    store.step(RUN, None, [Frozen(CHUNK, b"masked contributions" * 100)])
    store.end(RUN, "done")
    run = store.run(RUN)
    assert run is not None
    assert run.secret is None
    assert not run.open
    store.close()
    for file in store.path.parent.iterdir():
        assert SECRET not in file.read_bytes(), file


def test_a_run_is_accepted_once(store: Store) -> None:
    store.accept(RUN, "policy", SECRET)
    with pytest.raises(StoreError, match="it has a secret"):
        store.accept(RUN, "policy", bytes(32))
    assert store.run(RUN).secret == SECRET  # type: ignore[union-attr]
    store.end(RUN, "done")
    with pytest.raises(StoreError, match="cannot be accepted"):
        store.accept(RUN, "policy", bytes(32))
    assert store.runs(ended=False) == []
    assert len(store.runs()) == 1


def test_a_message_is_frozen_once(store: Store) -> None:
    assert store.step(RUN, None, [Frozen(CHUNK, b"one")]) == [Frozen(CHUNK, b"one")]
    store = again(store)
    assert store.step(RUN, None, [Frozen(CHUNK, b"one")]) == [Frozen(CHUNK, b"one")]
    with pytest.raises(StoreError, match="never made anew"):
        store.step(RUN, None, [Frozen(CHUNK, b"two")])
    assert store.pending(RUN) == [Frozen(CHUNK, b"one")]
    assert store.sent(RUN) == {("chunk", 0)}


def test_what_the_broker_has_is_not_kept_but_still_refused_with_other_bytes(store: Store) -> None:
    store.step(RUN, None, [Frozen(CHUNK, b"one")])
    store.acked(RUN, [CHUNK])
    assert store.pending(RUN) == []
    assert store.step(RUN, None, [Frozen(CHUNK, b"one")]) == [Frozen(CHUNK, None)]
    with pytest.raises(StoreError, match="never made anew"):
        store.step(RUN, None, [Frozen(CHUNK, b"two")])
    assert store.left(RUN) == [("chunk", 1, 3)]


def test_of_a_message_that_is_made_again_only_the_stamp_is_kept(store: Store) -> None:
    first, stamp = Name(1, "chunk", 0), b"s" * 32
    both = [Frozen(first, b"one" * 1000, stamp), Frozen(CHUNK, b"two" * 1000, b"t" * 32)]
    assert store.step(RUN, None, both) == both
    assert b"oneoneone" not in b"".join(path.read_bytes() for path in store.path.parent.iterdir())
    assert store.pending(RUN) == []
    assert store.sent(RUN) == set()  # so the session makes it again
    assert store.step(RUN, None, both) == both
    with pytest.raises(StoreError, match="never made anew"):
        store.step(RUN, None, [Frozen(first, b"one" * 1000, b"x" * 32)])
    store.acked(RUN, [first])
    assert store.sent(RUN) == set()  # one of two receivers does not have it yet
    assert store.step(RUN, None, both) == [Frozen(first, None), both[1]]
    store.acked(RUN, [CHUNK])
    assert store.sent(RUN) == {("chunk", 0)}


def test_what_was_taken_is_on_the_disk_before_an_answer_is(store: Store) -> None:
    first, second = Name(1, "key", 0), Name(2, "key", 0)
    store.step(RUN, Taken(first, b"1" * 32), [])  # written with the next answer
    store.step(RUN, Taken(second, b"2" * 32), [Frozen(CHUNK, b"answer")])
    other = Store(store.path, "north")  # sees what is on the disk
    assert other.taken(RUN) == {first: b"1" * 32, second: b"2" * 32}
    other.close()


def test_a_step_that_fails_leaves_nothing(store: Store) -> None:
    store.step(RUN, None, [Frozen(CHUNK, b"one")])
    later = Name(0xFFFF, "chunk", 1)
    with pytest.raises(StoreError):
        store.step(RUN, None, [Frozen(later, b"x"), Frozen(CHUNK, b"two")])
    assert store.sent(RUN) == {("chunk", 0)}


def test_whose_store_it_is(store: Store, tmp_path: Path) -> None:
    store.close()
    with pytest.raises(StoreError, match="the store of north, not of south"):
        Store(store.path, "south")
    store.path.chmod(0o640)
    with pytest.raises(StoreError, match="others can read it"):
        Store(store.path, "north")
    foreign = tmp_path / "foreign.db"
    foreign.write_bytes(b"not a database at all, but long enough to be one" * 50)
    foreign.chmod(0o600)
    with pytest.raises(StoreError, match="cannot be used"):
        Store(foreign, "north")


def test_a_store_that_must_be_there(store: Store, tmp_path: Path) -> None:
    other = Store(store.path, None)
    assert other.identity == store.identity
    other.close()
    for path, said in ((tmp_path / "absent.db", "there is no"), (tmp_path / "empty", "not a Silo")):
        if path.name == "empty":
            path.touch(mode=0o600)
        with pytest.raises(StoreError, match=said):
            Store(path, None)
    assert not (tmp_path / "absent.db").exists()


def test_another_programs_file_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE x (y)")
    path.chmod(0o600)
    before = path.read_bytes()
    for party in (None, "north"):
        with pytest.raises(StoreError, match="not a Silograph state store"):
            Store(path, party)
    assert path.read_bytes() == before


def test_of_another_version(store: Store) -> None:
    store.close()
    with closing(sqlite3.connect(store.path)) as raw:
        raw.execute("UPDATE store SET version = 1")
        raw.commit()
    with pytest.raises(
        StoreError, match="state store of version 1; this Silograph reads versions 3 and 4"
    ):
        Store(store.path, "north")


class TestTogether:
    def test_all_or_nothing(self, store: Store) -> None:
        def fail() -> None:
            with store.together():
                store.accept(RUN, "policy", SECRET)
                store.mark_phase(RUN, "keys")
                store.accept(RUN, "policy", SECRET)

        with pytest.raises(StoreError, match="it has a secret"):
            fail()
        run = again(store).run(RUN)
        assert run is not None
        assert (run.decision, run.phase, run.secret) == ("", "", None)

    def test_notes_are_not_lost(self, store: Store) -> None:
        first, second = Name(1, "key", 0), Name(2, "key", 0)
        store.step(RUN, Taken(first, b"1" * 32), [])
        with pytest.raises(StoreError), store.together():
            store.mark_phase("cd" * 16, "keys")
        with store.together():
            store.step(RUN, Taken(second, b"2" * 32), [])
        assert again(store).taken(RUN) == {first: b"1" * 32, second: b"2" * 32}

    def test_a_secret_is_wiped_from_every_file(self, store: Store) -> None:
        store.accept(RUN, "policy", SECRET)
        with store.together():
            store.end(RUN, "done")
            store.mark_phase(RUN, "over")
        for file in store.path.parent.iterdir():  # while it is open
            assert SECRET not in file.read_bytes(), file

    def test_a_spend_is_noted_once(self, store: Store) -> None:
        assert store.mark_spent(RUN, "one") is True
        assert store.mark_spent(RUN, "two") is False
        assert store.witness() == "two"


def test_unknown_runs(store: Store) -> None:
    with pytest.raises(StoreError, match="not known"):
        store.mark_phase("cd" * 16, "keys")
    assert store.run("cd" * 16) is None


def test_run_entropy_repeats_itself_and_nothing_else() -> None:
    first, second = RunEntropy(SECRET), RunEntropy(SECRET)
    drawn = [first.bytes(32) for _ in range(50)]
    assert drawn == [second.bytes(32) for _ in range(50)]
    other = RunEntropy(bytes(32))
    assert len({*drawn, *(other.bytes(32) for _ in range(50))}) == 100
    assert SECRET.hex() not in repr(first)


def test_the_edges_of_a_run_and_its_receivers(store: Store) -> None:
    assert store.run(RUN).data == ""  # type: ignore[union-attr]
    store.accept(RUN, "policy", SECRET, "cd" * 32)
    store.step(RUN, None, [Frozen(CHUNK, b"one"), Frozen(Name(2, "part", 0), b"two")])
    store.step(RUN, None, [Frozen(Name(2, "part", 1), b"three")])
    store = again(store)
    assert store.run(RUN).data == "cd" * 32  # type: ignore[union-attr]
    assert store.receivers(RUN) == {0xFFFF, 2}
    assert store.receivers("ef" * 16) == set()


class TestDamage:
    """Flipped bits are found when a row is read, and before it is changed."""

    @pytest.fixture
    def used(self, store: Store) -> Path:
        """A run under way: accepted, paid for, messages taken, sent and not yet sent."""
        store.set_roster(3, b"r" * 32)
        store.accept(RUN, "policy", SECRET, "cd" * 32)
        store.mark_spent(RUN, "witness")
        store.mark_phase(RUN, "keys")
        later = Name(0xFFFF, "chunk", 1)
        store.step(RUN, Taken(Name(1, "key", 0), b"1" * 32), [Frozen(CHUNK, b"one" * 500)])
        store.step(RUN, None, [Frozen(later, b"two" * 500)], [CHUNK])
        store.add("ef" * 16, b"another")
        store.end("ef" * 16, "refused", "policy")
        store.close()
        return store.path

    def content(self, path: Path) -> object:
        """Everything that a service reads, and what it would send."""
        with closing(Store(path, "north")) as store:
            store.verify()
            again = store.step(RUN, None, [Frozen(CHUNK, b"one" * 500)])
            return (
                store.runs(), store.run(RUN), store.taken(RUN), store.sent(RUN),
                store.pending(RUN), again, store.roster(), store.witness(), store.identity,
            )  # fmt: skip

    def test_any_bit(self, used: Path) -> None:
        whole, expected = used.read_bytes(), self.content(used)
        pages, damaged = len(whole), 0
        # Every byte that holds content, and some that do not; one bit of each.
        places = [i for i in range(100, pages) if whole[i]]
        for place in places[:: max(1, len(places) // 150)]:
            flipped = bytearray(whole)
            flipped[place] ^= 1 << (place % 8)
            for suffix in ("-wal", "-shm"):
                Path(f"{used}{suffix}").unlink(missing_ok=True)
            used.write_bytes(flipped)
            try:
                assert self.content(used) == expected, place
            except StoreError:
                damaged += 1
        assert damaged > 40

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ("UPDATE runs SET secret = zeroblob(32) WHERE state = 'open'", "run abababababab"),
            ("UPDATE runs SET proposal = 'x' WHERE state = 'open'", "run abababababab"),
            ("UPDATE runs SET spent = 0", "in table runs"),
            ("UPDATE runs SET state = 'open', code = ''", "in table runs"),
            ("UPDATE store SET witness = 'other'", "what it says of the party"),
            ("UPDATE store SET roster_serial = 2", "what it says of the party"),
            ("UPDATE outgoing SET raw = zeroblob(1500) WHERE slot = '1'", "a message of run"),
            ("UPDATE outgoing SET raw = NULL WHERE slot = '1'", "a message of run"),
            ("UPDATE outgoing SET digest = zeroblob(32) WHERE slot = '0'", "a message of run"),
            ("UPDATE outgoing SET slot = '7' WHERE slot = '0'", "a message of run"),
            ("UPDATE incoming SET digest = zeroblob(32)", "in table incoming"),
            ("UPDATE incoming SET number = 5", "in table incoming"),
        ],
    )
    def test_any_column(self, used: Path, change: str, said: str) -> None:
        with closing(sqlite3.connect(used)) as raw:
            raw.execute(change)
            raw.commit()
        with pytest.raises(StoreError, match=f"the state store is damaged: .*{said}"):
            self.content(used)

    def test_a_change_does_not_hide_it(self, used: Path) -> None:
        with closing(sqlite3.connect(used)) as raw:
            raw.execute("UPDATE runs SET secret = zeroblob(32) WHERE state = 'open'")
            raw.execute("UPDATE outgoing SET digest = zeroblob(32) WHERE slot = '1'")
            raw.commit()
        with closing(Store(used, "north")) as store:
            for change in (lambda: store.mark_phase(RUN, "x"), lambda: store.end(RUN, "done")):
                with pytest.raises(StoreError, match="was changed in table runs"):
                    change()
            store.acked(RUN, [Name(0xFFFF, "chunk", 1)])
            with pytest.raises(StoreError, match="was changed in table outgoing"):
                store.sent(RUN)

    def test_a_damaged_message_can_be_dropped(self, used: Path) -> None:
        """So that the run can be ended."""
        with closing(sqlite3.connect(used)) as raw:
            raw.execute("UPDATE outgoing SET raw = zeroblob(1500) WHERE slot = '1'")
            raw.commit()
        with closing(Store(used, "north")) as store:
            store.end(RUN, "aborted", "internal", [Frozen(Name(0xFFFF, "abort", 0), b"word")])
            assert [message.raw for message in store.pending(RUN)] == [b"word"]

    def test_version_three(self, used: Path) -> None:
        """A store from before there were marks gets them when it is opened."""
        expected = self.content(used)
        with closing(sqlite3.connect(used)) as raw:
            for table in ("store", "runs", "outgoing", "incoming"):
                raw.execute(f"ALTER TABLE {table} DROP COLUMN mark")
            raw.execute("UPDATE store SET version = 3")
            raw.commit()
        assert self.content(used) == expected
        assert self.content(used) == expected
