"""What is a ledger file and what is not; settings, modes, damage, and files that disappear."""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import LedgerError
from silograph.ledger import file
from silograph.ledger.book import Ledger
from tests.ledger.test_book import pay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with 40 spends, closed."""
    made = tmp_path / "silo.ledger"
    with Ledger(made) as ledger:
        ledger.set_limit("claims", 100.0)
        for i in range(40):
            pay(ledger, f"r{i}", {0: 0.5, 1: 1.0, 2: 1.5, 3: 2.0})
    return made


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


class TestDurability:
    def test_settings(self, path: Path) -> None:
        """Without these a power cut takes back what a spend has promised."""
        with Ledger(path) as ledger:
            found = ledger.settings()
        assert found["journal_mode"] == "wal"
        assert found["synchronous"] == 2, "FULL"
        assert found["foreign_keys"] == 1
        assert int(found["busy_timeout"]) >= 10_000

    def test_settings_after_a_fork(self, path: Path) -> None:
        with Ledger(path) as ledger:
            before = ledger.settings()
            ledger._transactions._disconnect()
            assert ledger.settings() == before

    def test_a_setting_that_does_not_hold_is_refused(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(file.SETTINGS, "synchronous", 3)
        with pytest.raises(LedgerError, match="synchronous is 2, and must be 3"):
            Ledger(path)

    def test_a_spend_syncs_the_log(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A repeated spend may have been left in the page cache by a writer that died."""
        synced: list[Path] = []
        real = file.sync_path

        def recording(target: Path) -> None:
            synced.append(target)
            real(target)

        monkeypatch.setattr(file, "sync_path", recording)
        with Ledger(path) as ledger:
            pay(ledger, "new", {1: 1.0})
            assert synced == []
            assert pay(ledger, "new", {1: 1.0}).repeated
            assert synced == [Path(f"{ledger.path}-wal"), ledger.path.parent]

    def test_entries_are_only_added(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in (
                "DELETE FROM ledger",
                "DELETE FROM spends",
                "DELETE FROM losses",
                "DELETE FROM limits",
                "DELETE FROM chain",
                "UPDATE ledger SET version = 3",
                "UPDATE spends SET delta = 0",
                "UPDATE losses SET epsilon = 0.0",
                "UPDATE limits SET epsilon = 1e9",
                "UPDATE chain SET digest = ''",
            ):
                with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                    connection.execute(statement)

    def test_mode_0600_whatever_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            with Ledger(tmp_path / "x") as ledger:
                pay(ledger, "r1", {1: 1.0})
                names = sorted(child.name for child in tmp_path.iterdir())
                modes = {stat.S_IMODE(child.stat().st_mode) for child in tmp_path.iterdir()}
        finally:
            os.umask(before)
        assert names == ["x", "x-shm", "x-wal"]
        assert modes == {0o600}

    def test_nothing_but_the_ledger_stays(self, path: Path) -> None:
        assert [child.name for child in path.parent.iterdir()] == [path.name]

    def test_identity_stays(self, path: Path, tmp_path: Path) -> None:
        with Ledger(path) as first, Ledger(path) as again, Ledger(tmp_path / "y") as other:
            assert first.identity == again.identity != other.identity


class TestRefusals:
    def refused(self, path: Path, match: str) -> None:
        before = path.read_bytes() if path.is_file() else None
        for create in (True, False):
            with pytest.raises(LedgerError, match=match) as caught:
                Ledger(path, create=create)
            assert str(path) in str(caught.value)
        assert (path.read_bytes() if path.is_file() else None) == before

    def test_absent(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match="absent"):
            Ledger(tmp_path / "x", create=False)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("content", [b"x" * 5000, b"lineage,epsilon\n", b"\0" * 4096])
    def test_no_database(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "x"
        path.write_bytes(content)
        self.refused(path, "not a Silograph ledger")

    def test_empty(self, tmp_path: Path) -> None:
        """An empty file may be a ledger that lost everything. It is no new one."""
        path = tmp_path / "x"
        path.touch()
        self.refused(path, "not a Silograph ledger: the file is empty")

    @pytest.mark.parametrize("mode", ["delete", "wal"])
    def test_foreign(self, tmp_path: Path, mode: str) -> None:
        path = tmp_path / "x"
        sql(path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE spends (a)")
        self.refused(path, "another program's database")

    def test_foreign_with_the_tables_of_a_ledger(self, path: Path) -> None:
        sql(path, "PRAGMA application_id = 7")
        self.refused(path, "another program's database")

    @pytest.mark.parametrize(
        ("version", "said"),
        [
            (0, "ledger without a version"),
            (1, "ledger of version 1; this Silograph reads versions 2 and 3"),
            (4, "ledger of version 4; this Silograph reads versions 2 and 3.*newer"),
            (99, "ledger of version 99"),
        ],
    )
    def test_other_versions(self, path: Path, version: int, said: str) -> None:
        sql(path, "DROP TRIGGER ledger_no_update")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("UPDATE ledger SET version = ?", (version,))
        self.refused(path, said)

    @pytest.mark.parametrize(
        "statement",
        ["DROP TABLE ledger", "DELETE FROM ledger", "INSERT INTO ledger VALUES (1,1,1)"],
    )
    def test_version_table(self, path: Path, statement: str) -> None:
        sql(path, "DROP TRIGGER ledger_no_delete", statement)
        self.refused(path, "damaged or truncated")

    def test_losses_without_their_spend(self, path: Path) -> None:
        sql(path, "DROP TRIGGER spends_no_delete", "DELETE FROM spends WHERE number = 3")
        self.refused(path, "damaged or truncated")

    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO limits VALUES (NULL, 'claims', 'much', 0.0, 1, 'now')",
            "INSERT INTO limits VALUES (NULL, 'claims', 1.0, 'none', 1, 'now')",
            "INSERT INTO limits VALUES (NULL, 'claims', 1.0, 0.0, 'all', 'now')",
            "INSERT INTO limits VALUES (NULL, x'00', 1.0, 0.0, 1, 'now')",
            "INSERT INTO spends VALUES (NULL, 'a', 'b', 'c', 'none', 'd', 'e', 'f')",
            "INSERT INTO spends VALUES (NULL, x'00', 'b', 'c', 0.0, 'd', 'e', 'f')",
            "INSERT INTO losses VALUES (1, 9, 'much')",
            "INSERT INTO losses VALUES (1, 9, -1.0)",
            "INSERT INTO losses VALUES (1, 9, 9e999)",
            "INSERT INTO limits VALUES (NULL, 'claims', 9e999, 0.0, 1, 'now')",
            "INSERT INTO losses VALUES (1, 'all', 1.0)",
        ],
    )
    def test_values_of_another_kind(self, path: Path, statement: str) -> None:
        with pytest.raises(sqlite3.IntegrityError):
            sql(path, statement)
        unguarded = ("DROP TRIGGER spends_chained", "DROP TRIGGER limits_chained")
        sql(path, *unguarded, "PRAGMA ignore_check_constraints = ON", statement)
        self.refused(path, "damaged or truncated")

    def test_truncated_anywhere(self, path: Path) -> None:
        content = path.read_bytes()
        for size in [1, 50, 99, 100, 512, *range(1000, len(content), 1000), len(content) - 1]:
            path.write_bytes(content[:size])
            self.refused(path, "damaged or truncated|not a Silograph ledger")

    def test_every_page_counts(self, path: Path) -> None:
        content = path.read_bytes()
        for start in range(0, len(content), 4096):
            noise = b"\xa5" * 4096
            path.write_bytes(content[:start] + noise + content[start + 4096 :])
            self.refused(path, "damaged or truncated|not a Silograph ledger|cannot be used")

    @pytest.mark.slow
    @settings(max_examples=150, deadline=None)
    @given(st.data())
    def test_damage_never_gives_another_error(self, data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x")
            path.write_bytes(self.sample())
            content = bytearray(path.read_bytes())
            for _ in range(data.draw(st.integers(1, 4))):
                place = data.draw(st.integers(0, len(content) - 1))
                content[place] = data.draw(st.integers(0, 255))
            path.write_bytes(content)
            try:
                with Ledger(path) as ledger:
                    ledger.rows()
                    str(ledger)
                    pay(ledger, "later", {1: 1.0})
            except LedgerError as error:
                message = str(error)
            else:
                message = str(path)
            assert str(path) in message or "lineage" in message

    _sample: bytes | None = None

    @classmethod
    def sample(cls) -> bytes:
        if cls._sample is None:
            with tempfile.TemporaryDirectory() as folder:
                with Ledger(Path(folder, "x")) as ledger:
                    for i in range(10):
                        pay(ledger, f"r{i}", {0: 0.5, 1: 1.0})
                cls._sample = Path(folder, "x").read_bytes()
        return cls._sample

    def test_a_folder(self, tmp_path: Path) -> None:
        self.refused(tmp_path, "cannot open")

    def test_no_folder(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "absent" / "x", "cannot")

    def test_odd_paths(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match="path"):
            Ledger("a\0b")
        for name in ("with space", "50%", "a?mode=memory", "a#b", ":memory:", "é"):
            with Ledger(tmp_path / name) as ledger:
                pay(ledger, "r1", {1: 1.0})
            assert (tmp_path / name).is_file()
            with Ledger(tmp_path / name, create=False) as ledger:
                assert len(ledger.rows()) == 1


class TestDisappearance:
    def test_a_log_without_its_ledger(self, path: Path) -> None:
        """A new file in its place would take up the old log, or forget the old spends."""
        with Ledger(path) as ledger:
            pay(ledger, "r", {1: 1.0})
            log = Path(f"{path}-wal").read_bytes()
        path.unlink()
        Path(f"{path}-wal").write_bytes(log)
        with pytest.raises(LedgerError, match="is gone"):
            Ledger(path)
        assert not path.exists()

    def test_removed_while_open(self, path: Path) -> None:
        with Ledger(path) as ledger:
            path.unlink()
            with pytest.raises(LedgerError, match="is gone"):
                pay(ledger, "r", {1: 1.0})
            with pytest.raises(LedgerError, match="is gone"):
                ledger.remaining("claims")

    def test_replaced_while_open(self, path: Path, tmp_path: Path) -> None:
        shutil.copy(path, tmp_path / "backup")
        with Ledger(path) as ledger:
            pay(ledger, "r", {1: 1.0})
            (tmp_path / "backup").replace(path)
            with pytest.raises(LedgerError, match="the ledger's file was replaced by another"):
                pay(ledger, "r2", {1: 1.0})

    def test_lost_entries(self, path: Path) -> None:
        """Entries that this very process has seen are gone."""
        with Ledger(path) as ledger:
            pay(ledger, "new", {1: 1.0})
            assert ledger.spent("claims").epsilon == 41.0
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("DROP TRIGGER spends_no_delete")
                connection.execute("DELETE FROM spends WHERE number > 39")
            for _ in range(2):
                with pytest.raises(LedgerError, match=f"{path}.*had 41, and now has 39"):
                    pay(ledger, "newer", {1: 1.0})


def as_nobody(task: Callable[[], None]) -> str:
    """Run ``task`` without root's rights; what it raised, as text."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            task()
            said = "nothing"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(send, said.encode())
        os._exit(0)
    os.close(send)
    with open(receive, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestRights:
    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
            Path(name).chmod(0o700)

    def test_new_in_a_read_only_folder(self, folder: Path) -> None:
        folder.chmod(0o555)
        said = as_nobody(lambda: Ledger(folder / "x").close())
        assert said == f"LedgerError: {folder / 'x'}: cannot create the ledger: Permission denied"

    def test_old_in_a_read_only_folder(self, folder: Path, path: Path) -> None:
        shutil.copy(path, folder / "x")
        (folder / "x").chmod(0o666)
        folder.chmod(0o555)
        said = as_nobody(lambda: Ledger(folder / "x").close())
        assert said.startswith(f"LedgerError: {folder / 'x'}: cannot ")

    def test_old_and_read_only(self, folder: Path, path: Path) -> None:
        shutil.copy(path, folder / "x")
        (folder / "x").chmod(0o444)
        folder.chmod(0o777)

        def task() -> None:
            with Ledger(folder / "x") as ledger:
                pay(ledger, "r", {1: 1.0})

        said = as_nobody(task)
        assert said.startswith(f"LedgerError: {folder / 'x'}: cannot write the ledger")

    def test_old_and_hidden(self, folder: Path, path: Path) -> None:
        shutil.copy(path, folder / "x")
        (folder / "x").chmod(0)
        folder.chmod(0o777)
        said = as_nobody(lambda: Ledger(folder / "x").close())
        assert said.startswith(f"LedgerError: {folder / 'x'}: cannot open the ledger")


class TestVersionTwo:
    """A ledger from before there were freezes is brought up to date when it is opened."""

    @pytest.fixture
    def old(self, path: Path) -> Path:
        """The same entries in the tables of version 2."""
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            for (name,) in names.fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.executescript(
                "ALTER TABLE chain RENAME TO new_chain; DROP TABLE freezes;"
                "CREATE TABLE chain (serial INTEGER PRIMARY KEY,"
                " kind TEXT NOT NULL CHECK (kind IN ('spend', 'limit', 'restore')),"
                " number INTEGER NOT NULL, digest TEXT NOT NULL);"
                "INSERT INTO chain SELECT * FROM new_chain; DROP TABLE new_chain;"
                "UPDATE ledger SET version = 2;"
            )
        return path

    def test_nothing_is_lost(self, old: Path) -> None:
        with closing(sqlite3.connect(old)) as raw:
            (digest,) = raw.execute("SELECT digest FROM chain WHERE serial = 41").fetchone()
        with Ledger(old) as ledger:
            assert (ledger.witness().serial, ledger.witness().digest) == (41, digest)
            assert len(ledger.rows()) == 40
            ledger.freeze("a look at it")
        with Ledger(old) as ledger:
            assert ledger.frozen() is not None
        for statement in (
            "DELETE FROM chain",
            "DELETE FROM freezes",
            "UPDATE ledger SET version=2",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                sql(old, statement)

    def test_a_damaged_one_is_left_as_it_is(self, old: Path) -> None:
        sql(old, "UPDATE limits SET epsilon = 200.0", "PRAGMA wal_checkpoint(TRUNCATE)")
        before = old.read_bytes()
        with pytest.raises(LedgerError, match="entry 1 was changed"):
            Ledger(old)
        assert old.read_bytes() == before

    def test_restored(self, old: Path, tmp_path: Path) -> None:
        sql(old, f"PRAGMA application_id = {file.BACKUP_ID}")
        with Ledger.restore(old, tmp_path / "new", complete=True) as ledger:
            assert ledger.freeze("a look at it").frozen
