"""A chain that breaks where anything is changed; backups; restored ledgers that forget nothing."""

import hashlib
import json
import math
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ArgumentError, BudgetError, LedgerError, RollbackError
from silograph.ledger.book import Ledger
from silograph.ledger.chain import Witness
from tests.ledger.test_book import pay, ticking
from tests.ledger.test_file import sql


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Two lineages, one with a limit; five entries."""
    with Ledger(tmp_path / "silo.ledger", clock=ticking) as opened:
        opened.set_limit("claims", 10.0, 1e-6)
        pay(opened, "r1", {0: 0.5, 1: 1.0})
        pay(opened, "r2", {0: 0.5, 1: 1.0}, 1e-9)
        pay(opened, "r1", {0: 2.0, 1: math.inf}, unbounded=True, lineage="loans", new_lineage=True)
        opened.set_limit("claims", 8.0, 1e-6)
        yield opened


class TestChain:
    def test_every_entry_moves_the_head(self, ledger: Ledger) -> None:
        seen = {ledger.witness()}
        pay(ledger, "r3", {1: 1.0})
        seen.add(ledger.witness())
        ledger.set_limit("claims", 9.0, 1e-6)
        seen.add(ledger.witness())
        assert [w.serial for w in sorted(seen, key=lambda w: w.serial)] == [5, 6, 7]
        assert len({w.digest for w in seen}) == 3

    def test_what_writes_nothing_does_not(self, ledger: Ledger) -> None:
        before = ledger.witness()
        assert pay(ledger, "r1", {0: 0.5, 1: 1.0}).repeated
        ledger.set_limit("claims", 8.0, 1e-6)
        with pytest.raises(BudgetError):
            pay(ledger, "r9", {1: 100.0})
        assert ledger.witness() == before == ledger.verify()

    def test_anyone_can_follow_it(self, ledger: Ledger) -> None:
        """The documented text, hashed by hand."""
        head = "silograph/ledger/v2"
        time = "2031-05-06T05:08:09.123+00:00"
        spend = ["coordinator + t silos", "feat/masked", time, [[0, 0.5], [1, 1.0]]]
        first = hashlib.sha256(text([head, ledger.identity, ledger.created])).hexdigest()
        limit = [head, first, 1, "limit", 1, "claims", 10.0, 1e-6, 1, time]
        second = hashlib.sha256(text(limit)).hexdigest()
        entry = [head, second, 2, "spend", 1, "claims", "r1", "release", 0.0, *spend]
        third = Witness(ledger.identity, 2, hashlib.sha256(text(entry)).hexdigest())
        ledger.check_not_older_than(third)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE spends SET delta = 0.5 WHERE number = 2",
            "UPDATE spends SET run = 'r0' WHERE number = 1",
            "UPDATE spends SET lineage = 'loans' WHERE number = 2",
            "UPDATE spends SET time = '' WHERE number = 3",
            "UPDATE spends SET view = 'x' WHERE number = 3",
            "UPDATE spends SET method = 'x' WHERE number = 3",
            "UPDATE losses SET epsilon = 0.25 WHERE spend = 1 AND collusion = 0",
            "UPDATE losses SET epsilon = 0.0 WHERE epsilon IS NULL",
            "UPDATE losses SET collusion = 3 WHERE spend = 1 AND collusion = 1",
            "DELETE FROM losses WHERE spend = 1 AND collusion = 0",
            "INSERT INTO losses VALUES (1, 7, 0.0)",
            "UPDATE limits SET epsilon = 80.0 WHERE number = 2",
            "UPDATE limits SET collusion = 0 WHERE number = 1",
            "DELETE FROM limits WHERE number = 2",
            "DELETE FROM limits WHERE number = 1",
            "DELETE FROM chain WHERE serial = 5",
            "DELETE FROM chain WHERE serial = 2",
            "UPDATE chain SET serial = 9 WHERE serial = 5",
            "UPDATE ledger SET created = 'yesterday'",
            "UPDATE ledger SET identity = 'another'",
            "INSERT INTO spends VALUES (4, 'a', 'b', 'c', 0.0, 'd', 'e', 'f')",
            "INSERT INTO restores VALUES (1, 5, NULL, NULL, 'complete', '')",
        ],
    )
    def test_a_change_is_seen(self, ledger: Ledger, statement: str) -> None:
        ledger.close()
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(statement)
        with pytest.raises(LedgerError, match=r"damaged: (entry|it has rows)"):
            Ledger(ledger.path)

    def test_a_removed_spend_and_its_link(self, ledger: Ledger) -> None:
        """The end can be cut off cleanly; who noted the head sees it."""
        seen = ledger.witness()
        ledger.close()
        triggers = ("limits_no_delete", "chain_no_delete")
        sql(
            ledger.path,
            *(f"DROP TRIGGER {name}" for name in triggers),
            "DELETE FROM limits WHERE number = 2",
            "DELETE FROM chain WHERE serial = 5",
        )
        with Ledger(ledger.path) as shorter:
            with pytest.raises(RollbackError, match="ends at entry 4, and entry 5 was seen"):
                shorter.check_not_older_than(seen)
            shorter.set_limit("claims", 7.0, 1e-6)
            with pytest.raises(RollbackError, match="another history"):
                shorter.check_not_older_than(seen)

    def test_lost_rows_stop_the_next_spend(self, ledger: Ledger) -> None:
        """In a process that has it open, and on a lineage without a limit."""
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            connection.execute("DROP TRIGGER spends_no_delete")
            connection.execute("DELETE FROM spends WHERE number = 3")
        with pytest.raises(LedgerError, match="had 3 spends, and now has 2"):
            pay(ledger, "r7", {1: 1.0}, lineage="new", new_lineage=True)

    @pytest.mark.parametrize("more", [0, 3])
    def test_rolled_back_under_an_open_ledger(self, ledger: Ledger, more: int) -> None:
        """In place, so that it is the same file; ``more`` entries later it is as long again."""
        with closing(sqlite3.connect(":memory:")) as old:
            with closing(sqlite3.connect(ledger.path)) as now:
                now.backup(old)
            pay(ledger, "r3", {1: 1.0})
            pay(ledger, "r4", {1: 1.0})
            with closing(sqlite3.connect(ledger.path)) as now:
                old.backup(now)
        with Ledger(ledger.path) as other:
            for i in range(more):
                pay(other, f"o{i}", {1: 0.5})
        for task in (lambda: pay(ledger, "r5", {1: 1.0}), lambda: ledger.set_limit("claims", 9.0)):
            with pytest.raises(RollbackError, match="another history" if more else "old copy"):
                task()

    def test_rows_need_their_link(self, ledger: Ledger) -> None:
        """What a program that knows no chain would write."""
        for statement in (
            "INSERT INTO spends VALUES (NULL, 'a', 'b', 'c', 0.0, 'd', 'e', 'f')",
            "INSERT INTO limits VALUES (NULL, 'a', 1.0, 0.0, 1, 'f')",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="not chained"):
                sql(ledger.path, statement)
        assert ledger.verify().serial == 5


def text(content: list[object]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


class TestWitness:
    def test_old_and_new(self, tmp_path: Path) -> None:
        with Ledger(tmp_path / "x") as ledger, Ledger(tmp_path / "y") as other:
            empty = ledger.witness()
            assert empty.serial == 0
            pay(ledger, "r1", {1: 1.0})
            one = ledger.witness()
            pay(ledger, "r2", {1: 1.0})
            for seen in (empty, one, ledger.witness()):
                ledger.check_not_older_than(seen)
            with pytest.raises(RollbackError, match="another ledger"):
                other.check_not_older_than(one)
            with pytest.raises(RollbackError, match="another ledger"):
                other.check_not_older_than(empty)

    @pytest.mark.slow
    @given(st.text(max_size=150) | st.from_regex(r"[0-9a-f-]{36}:[0-9]{1,19}:[0-9a-f]{64}\n?"))
    def test_parse(self, value: str) -> None:
        with suppress(ArgumentError):
            assert str(Witness.parse(value)) == value


class TestBackup:
    def test_says_where_it_stood(self, ledger: Ledger, tmp_path: Path) -> None:
        stood = ledger.backup(tmp_path / "b")
        assert stood == ledger.witness()
        assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "b", "silo.ledger", "silo.ledger-shm", "silo.ledger-wal",
        ]  # fmt: skip

    def test_is_no_ledger(self, ledger: Ledger, tmp_path: Path) -> None:
        ledger.backup(tmp_path / "b")
        with pytest.raises(LedgerError, match="a ledger's backup, not a ledger"):
            Ledger(tmp_path / "b")

    def test_overwrites_nothing(self, ledger: Ledger, tmp_path: Path) -> None:
        (tmp_path / "b").write_text("precious")
        with pytest.raises(LedgerError, match="never overwritten"):
            ledger.backup(tmp_path / "b")
        assert (tmp_path / "b").read_text() == "precious"
        with pytest.raises(LedgerError, match="cannot be written"):
            ledger.backup(tmp_path / "absent" / "b")

    def test_while_others_spend(self, ledger: Ledger, tmp_path: Path) -> None:
        with Ledger(ledger.path) as other:
            for i in range(20):
                pay(other, f"o{i}", {1: 0.01})
                stood = ledger.backup(tmp_path / f"b{i}")
                assert stood.serial == 6 + i


class TestPrune:
    def names(self, folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir())

    def test_the_newest_are_kept(self, ledger: Ledger, tmp_path: Path) -> None:
        folder = tmp_path / "backups"
        folder.mkdir()
        (folder / "notes.txt").write_text("precious")
        shutil.copy(__file__, folder / "other.ledger")
        for i in range(5):
            pay(ledger, f"p{i}", {1: 0.01})
            ledger.backup(folder / f"{9 - i}.ledger", keep=2)  # names say nothing
        ledger.backup(folder / "0.ledger", keep=2)  # no entry since: the younger file is kept
        assert self.names(folder) == ["0.ledger", "5.ledger", "notes.txt", "other.ledger"]
        with Ledger.restore(folder / "0.ledger", tmp_path / "new", complete=True) as made:
            assert len(made.rows()) == 8

    def test_never_all_and_never_anothers(self, ledger: Ledger, tmp_path: Path) -> None:
        folder = tmp_path / "backups"
        folder.mkdir()
        ledger.backup(folder / "1")
        with pytest.raises(ArgumentError, match="at least one"):
            ledger.backup(folder / "2", keep=0)
        with Ledger(tmp_path / "other") as other:
            other.backup(folder / "3")
        with pytest.raises(LedgerError, match="backups of 2 ledgers"):
            ledger.backup(folder / "4", keep=1)
        assert self.names(folder) == ["1", "3", "4"]


class TestRestore:
    @pytest.fixture
    def backup(self, ledger: Ledger, tmp_path: Path) -> Path:
        """Made at entry 5; the ledger went on to entry 7, and is lost."""
        ledger.backup(tmp_path / "b")
        pay(ledger, "r3", {0: 1.0, 1: 2.0})
        pay(ledger, "r4", {0: 1.0, 1: 2.0})
        ledger.close()
        ledger.path.rename(tmp_path / "lost")
        return tmp_path / "b"

    def seen(self, backup: Path) -> Witness:
        with Ledger(backup.parent / "lost") as lost:
            return lost.witness()

    def test_without_a_statement_nothing_can_be_spent(self, backup: Path) -> None:
        with Ledger.restore(backup, backup.parent / "new") as made:
            assert made.spent("claims").epsilon == math.inf
            left = made.remaining("claims")
            assert left is not None
            assert left.epsilon == left.delta == 0
            with pytest.raises(BudgetError):
                pay(made, "r5", {1: 5e-324})
            assert made.export()["restores"][0]["statement"] == "counted"
            assert "unbounded" in str(made)
            assert "from entry 5: what may have been lost after it is counted" in str(made)

    def test_what_is_lost_counts(self, backup: Path) -> None:
        seen = self.seen(backup)
        lost = {"claims": (4.0, 1e-9), "loans": 0.0}
        with Ledger.restore(backup, backup.parent / "new", lost=lost, seen=seen) as made:
            assert made.spent("claims").epsilon == 2.0 + 4.0
            assert made.spent("claims", 0).epsilon == 1.0 + 4.0
            assert made.spent("claims", 1).delta >= 2e-9
            for t in (0, 1):
                assert made.spent("loans", t).epsilon == (2.0, math.inf)[t]
            with pytest.raises(BudgetError):
                pay(made, "r5", {1: 2.5})
            pay(made, "r5", {1: 2.0})
            made.check_not_older_than(seen)
            assert made.witness().serial == seen.serial + 4
            levels = made.export()["lineages"][0]["spent_by_collusion"]
            assert [level["collusion"] for level in levels] == [0, 1]

    def test_a_lineage_that_the_backup_does_not_know(self, backup: Path) -> None:
        with Ledger.restore(backup, backup.parent / "new", lost={"newer": 3.0}) as made:
            assert made.spent("newer").epsilon == 3.0
            assert made.spent("claims").epsilon == math.inf

    def test_complete(self, backup: Path, tmp_path: Path) -> None:
        with Ledger(tmp_path / "lost") as lost:
            whole = lost.backup(tmp_path / "whole")
        path = tmp_path / "new"
        with Ledger.restore(tmp_path / "whole", path, complete=True, seen=whole) as made:
            assert made.spent("claims").epsilon == 6.0
            made.check_not_older_than(whole)
            assert made.witness().serial == whole.serial + 1

    def test_complete_and_yet_more_was_seen(self, backup: Path) -> None:
        with pytest.raises(RollbackError, match="ends at entry 5, and entry 7 was seen"):
            Ledger.restore(backup, backup.parent / "new", complete=True, seen=self.seen(backup))
        assert not (backup.parent / "new").exists()

    def test_a_wrong_word_that_it_is_complete_shows_later(self, backup: Path) -> None:
        seen = self.seen(backup)
        with Ledger.restore(backup, backup.parent / "new", complete=True) as made:
            with pytest.raises(RollbackError, match="old copy"):
                made.check_not_older_than(seen)
            pay(made, "r5", {1: 1.0})
            with pytest.raises(RollbackError, match="another history"):
                made.check_not_older_than(seen)

    def test_witnesses_of_the_lost_entries(self, backup: Path) -> None:
        """Those up to the one that was given are accounted for, later and foreign ones are not."""
        seen = self.seen(backup)
        earlier = Witness(seen.identity, seen.serial - 1, "0" * 64)
        forged = Witness(seen.identity, seen.serial, "0" * 64)
        later = Witness(seen.identity, seen.serial + 1, "0" * 64)
        with Ledger.restore(backup, backup.parent / "new", seen=seen) as made:
            made.check_not_older_than(earlier)
            for wrong in (forged, later):
                with pytest.raises(RollbackError):
                    made.check_not_older_than(wrong)

    def test_a_plain_copy_will_do(self, ledger: Ledger, tmp_path: Path) -> None:
        ledger.close()
        shutil.copy(ledger.path, tmp_path / "copy")
        ledger.path.rename(tmp_path / "lost")
        with Ledger.restore(tmp_path / "copy", ledger.path, complete=True) as made:
            assert made.spent("claims").epsilon == 2.0

    def test_refusals(self, backup: Path, tmp_path: Path) -> None:
        new = tmp_path / "new"
        other = Witness("8d7f5a9e-3f3c-4a52-8a0d-3f0b8a4a1f11", 3, "00" * 32)
        with pytest.raises(RollbackError, match="another ledger"):
            Ledger.restore(backup, new, seen=other)
        with pytest.raises(ArgumentError, match="not both"):
            Ledger.restore(backup, new, complete=True, lost={"claims": 1.0})
        with pytest.raises(ArgumentError, match="at least 0"):
            Ledger.restore(backup, new, lost={"claims": -1.0})
        with pytest.raises(LedgerError, match="cannot read the backup"):
            Ledger.restore(tmp_path / "absent", new)
        with pytest.raises(LedgerError, match="never overwritten"):
            Ledger.restore(backup, tmp_path / "lost", complete=True)
        Path(f"{new}-wal").touch()
        with pytest.raises(LedgerError, match="a log of the lost ledger"):
            Ledger.restore(backup, new, complete=True)
        Path(f"{new}-wal").unlink()
        damaged = bytearray(backup.read_bytes())
        damaged[damaged.index(b"claims")] ^= 1
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(LedgerError, match=f"{tmp_path / 'damaged'}: the ledger"):
            Ledger.restore(tmp_path / "damaged", new)
        (tmp_path / "damaged").write_bytes(b"x" * 9000)
        with pytest.raises(LedgerError, match="damaged"):
            Ledger.restore(tmp_path / "damaged", new)
        assert not new.exists()
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []

    def test_twice(self, backup: Path, tmp_path: Path) -> None:
        """A restored ledger is backed up and restored like any other."""
        with Ledger.restore(backup, tmp_path / "new", lost={"claims": 1.0, "loans": 1.0}) as made:
            made.backup(tmp_path / "b2")
        with Ledger.restore(tmp_path / "b2", tmp_path / "newer", complete=True) as again:
            assert again.spent("claims").epsilon == 3.0
            assert len(again.export()["restores"]) == 2
