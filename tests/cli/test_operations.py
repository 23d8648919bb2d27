"""The commands of an operator: keys, roster, certs, broker, ledger, trail."""

import json
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from silograph import NodeUniverse, Silo
from silograph.cli.app import app
from silograph.errors import (
    ArgumentError,
    CertificateError,
    ConfigError,
    KeyFileError,
    LedgerError,
    RollbackError,
    RosterError,
    StoreError,
    StudyError,
    TrailError,
)
from silograph.ledger.book import Ledger
from silograph.party import keys
from silograph.party.roster import read_roster, write_roster
from silograph.party.store import Store
from silograph.party.trail import Trail
from tests.cli.test_cli import run as run_process
from tests.support.local_deployment import LocalDeployment, Terms

RUN = bytes(range(16))


def run(*arguments: object, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=typed)


def ok(*arguments: object, typed: str | None = None) -> str:
    done = run(*arguments, typed=typed)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def fails(error: type[Exception], *arguments: object, match: str) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, error), (done.output, done.exception)
    assert re.search(match, str(done.exception)), done.exception


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keys, "_LOG_N", 10)
    return tmp_path


@pytest.fixture
def roster(folder: Path) -> str:
    """A roster of hub, north and south, and their keys."""
    for name in ("hub", "north", "south"):
        public = ok("keys", "new", f"{name}.key").strip()
        ok("roster", *(("new",) if name == "hub" else ("add",)), "roster.toml", name, public)
    return "roster.toml"


def public(name: str) -> str:
    return ok("keys", "show", f"{name}.key").splitlines()[1]


def digest(roster: str) -> str:
    return ok("roster", "digest", roster).strip()


def sign_all(roster: str, *names: str, **options: str) -> None:
    more = [part for key, value in options.items() for part in (f"--{key}", value)]
    for name in names:
        ok("roster", "sign", roster, "--identity", f"{name}.key", "--digest", digest(roster), *more)


class TestKeys:
    def test_new_and_show(self, folder: Path) -> None:
        said = ok("keys", "new", "x.key")
        assert re.fullmatch(r"ed25519:[0-9a-f]{64}\n", said)
        assert stat.S_IMODE((folder / "x.key").stat().st_mode) == 0o600
        shown = ok("keys", "show", "x.key")
        assert shown.startswith("x.key: not sealed, made 20")
        assert shown.endswith(said)
        secret = re.findall('secret = "(.*)"', (folder / "x.key").read_text())[0]
        assert secret not in said + shown
        fails(KeyFileError, "keys", "new", "x.key", match="never overwritten")

    def test_sealed_at_a_prompt(self, folder: Path) -> None:
        said = ok("keys", "new", "x.key", "--seal", typed="hunter2\nhunter2\n")
        assert "hunter2" not in said
        assert "x.key: sealed" in ok("keys", "show", "x.key")
        keys.load_identity("x.key", "hunter2")
        assert run("keys", "new", "y.key", "--seal", typed="one\ntwo\n").exit_code != 0
        assert not (folder / "y.key").exists()

    def test_sealed_with_a_file(self, folder: Path) -> None:
        word = folder / "word"
        word.write_text("hunter2\nsecond line\n")
        word.chmod(0o644)
        arguments = ("keys", "new", "x.key", "--passphrase-file", word)
        fails(KeyFileError, *arguments, match="others can read")
        word.chmod(0o600)
        assert "hunter2" not in ok(*arguments)
        keys.load_identity("x.key", "hunter2")
        word.write_text("\n")
        fails(KeyFileError, "keys", "new", "y", "--passphrase-file", word, match="first line")

    def test_errors_are_one_line(self, folder: Path) -> None:
        done = run_process("keys", "show", folder / "absent")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"silograph: {folder / 'absent'}: cannot be read: " + (
            "No such file or directory\n"
        )


class TestRoster:
    def test_from_new_to_signed_by_all(self, roster: str) -> None:
        assert "2 silos, not signed by hub, north, south" in ok("roster", "show", roster)
        sign_all(roster, "hub", "north", "south")
        shown = ok("roster", "show", roster)
        assert "signed by all" in shown
        assert max(map(len, shown.splitlines())) <= 80
        read_roster(roster).check_complete()
        found = json.loads(ok("roster", "show", roster, "--json"))
        assert found["signed_by"] == ["hub", "north", "south"]
        assert [silo["name"] for silo in found["silos"]] == ["north", "south"]
        assert found["digest"] == digest(roster)

    def test_a_person_is_asked(self, roster: str) -> None:
        said = run("roster", "sign", roster, "--identity", "hub.key", typed="n\n")
        assert said.exit_code == 1
        assert digest(roster) in said.output
        assert read_roster(roster).signed_by == ()
        ok("roster", "sign", roster, "--identity", "hub.key", typed="y\n")
        assert read_roster(roster).signed_by == ("hub",)

    def test_another_digest(self, roster: str) -> None:
        wrong = f"sha256:{'00' * 32}"
        arguments = ("roster", "sign", roster, "--identity", "hub.key", "--digest", wrong)
        fails(RosterError, *arguments, match="the digest is sha256:.*, and not sha256:0000")
        assert read_roster(roster).signed_by == ()

    def test_a_sealed_identity(self, roster: str) -> None:
        key = ok("keys", "new", "west.key", "--seal", typed="hunter2\nhunter2\n").splitlines()[-1]
        ok("roster", "add", roster, "west", key)
        arguments = ("roster", "sign", roster, "--identity", "west.key", "--digest", digest(roster))
        said = ok(*arguments, typed="hunter2\n")
        assert "hunter2" not in said
        assert read_roster(roster).signed_by == ("west",)

    def test_rotate_and_revoke(self, roster: str, folder: Path) -> None:
        sign_all(roster, "hub", "north", "south")
        new = ok("keys", "new", "north2.key").strip()
        said = ok("roster", "rotate", roster, "north", new, "--reason", "laptop stolen")
        assert "roster.1.toml: the roster that is replaced" in said
        assert "serial 2" in said
        arguments = ("roster", "sign", roster, "--identity", "hub.key", "--digest", digest(roster))
        fails(ArgumentError, *arguments, match="give that one with --previous")
        fails(RosterError, "roster", "sign", roster, "--identity", "north.key", "--digest",
              digest(roster), "--previous", "roster.1.toml", match="was revoked")  # fmt: skip
        sign_all(roster, "hub", "north2", "south", previous="roster.1.toml")
        read_roster(roster).check_complete()
        assert "north: laptop stolen" in ok("roster", "show", roster)
        ok("roster", "revoke", roster, "south", "--reason", "left")
        assert (folder / "roster.2.toml").exists()
        later = read_roster(roster)
        assert (later.serial, [m.name for m in later.roster.silos]) == (3, ["north"])
        later.check_follows(read_roster("roster.2.toml"))

    def test_helpers_and_organisations(self, roster: str) -> None:
        helper = ok("keys", "new", "notary.key").strip()
        said = ok("roster", "add", roster, "notary", helper, "--role", "helper",
                  "--organisation", "Notary & Sons")  # fmt: skip
        assert "2 silos, 1 helper, not signed by hub, north, south, notary" in said
        assert "1 helper" in ok("roster", "change", roster, "north", "--organisation", "North Bank")
        sign_all(roster, "hub", "north", "south", "notary")
        shown = ok("roster", "show", roster)
        assert re.search(r"^silo 0 +north +signed\n  North Bank\n  ed25519:", shown, re.MULTILINE)
        assert re.search(r"^silo 1 +south +signed\n  south\n", shown, re.MULTILINE)
        assert re.search(r"^helper 2 +notary +signed\n  Notary & Sons\n", shown, re.MULTILINE)
        found = json.loads(ok("roster", "show", roster, "--json"))
        assert found["coordinator"]["organisation"] == "hub"
        assert [silo["name"] for silo in found["silos"]] == ["north", "south"]
        assert found["helpers"] == [
            {"name": "notary", "organisation": "Notary & Sons", "key": helper}
        ]
        said = ok("roster", "change", roster, "south", "--role", "helper")
        assert "serial 2, 1 silo, 2 helpers, not signed by hub, north, south, notary" in said
        sign_all(roster, "hub", "north", "south", "notary", previous="roster.1.toml")
        read_roster(roster).check_complete()
        fails(RosterError, "roster", "change", roster, "south", match="already")
        for value, match in (("chief", "'chief' is not a role"), ("", "'' is not a role")):
            arguments = ("roster", "change", roster, "south", "--role", value)
            fails(RosterError, *arguments, match=match)
        fails(RosterError, "roster", "add", roster, "west", helper, "--organisation", "",
              match="'' is not an organisation")  # fmt: skip
        made = ("roster", "new", "other.toml", "hub", helper, "--organisation", "Institute")
        ok(*made)
        assert read_roster("other.toml").roster.coordinator.organisation == "Institute"

    def test_merge(self, roster: str, folder: Path) -> None:
        text = (folder / roster).read_text()
        for name in ("hub", "north", "south"):
            (folder / name).write_text(text)
            sign_all(name, name)
        assert "signed by all" in ok("roster", "merge", roster, "hub", "north", "south")

    @pytest.mark.parametrize("key", ["x", "ed25519:00", "ed25519:" + "G" * 64])
    def test_wrong_keys(self, roster: str, key: str) -> None:
        fails(ArgumentError, "roster", "add", roster, "west", key, match="not a public key")
        fails(RosterError, "roster", "add", roster, "north", public("hub"), match="the same")


class TestCertsAndBroker:
    def test_a_trial(self, roster: str, folder: Path) -> None:
        said = ok("certs", "new", "--roster", roster, "--out", "certs", "--days", "7")
        assert "broker.pem: CN=broker for localhost, 127.0.0.1" in said
        assert said.count("expires") == 5
        assert "BEGIN" not in said
        assert ok("certs", "show", "certs/north.pem").startswith("certs/north.pem: CN=north\n")
        said = ok("certs", "issue", "n2", "--out", "certs", "--host", "n2.example.org")
        assert "n2.example.org" in said
        fails(CertificateError, "certs", "new", "--roster", roster, "--out", "certs",
              match="never overwritten")  # fmt: skip
        arguments = ["broker", "config", "--roster", roster, "--out", "broker"]
        assert ok(*arguments, "--websocket", "0.0.0.0:443") == (
            "broker/users.conf\nbroker/nats.conf\n"
        )
        text = (folder / "broker" / "nats.conf").read_text()
        assert str(folder / "certs" / "broker.key") in text
        assert str(folder / "broker" / "streams") in text
        assert 'listen: "0.0.0.0:443"' in text
        ok(*arguments, "--subject", "north=CN=n,O=Bank")
        assert '"CN=n,O=Bank"' in (folder / "broker" / "users.conf").read_text()
        fails(ArgumentError, *arguments, "--subject", "north", match="not NAME=SUBJECT")


class TestLedger:
    @pytest.fixture
    def ledger(self, folder: Path) -> str:
        with Ledger("silo.ledger") as made:
            made.set_limit("claims", 3.0)
            self.spend(made, "r1")
        return "silo.ledger"

    @staticmethod
    def spend(ledger: Ledger, run: str) -> None:
        ledger.spend("claims", run, "release", {0: 0.5, 1: 1.0}, view="v", method="feat")

    def test_show_and_export(self, ledger: str, folder: Path) -> None:
        shown = ok("ledger", "show", ledger)
        *table, witness = shown.splitlines()
        assert max(map(len, table)) <= 80
        assert re.fullmatch(r"witness \S+:2:[0-9a-f]{64}", witness)
        found = json.loads(ok("ledger", "show", ledger, "--json"))
        assert found["lineages"][0]["remaining"]["epsilon"] == 2.0
        whole = json.loads(ok("ledger", "export", ledger))
        assert len(whole["spends"]) == 1
        ok("ledger", "export", ledger, "-o", "out.json")
        assert json.loads((folder / "out.json").read_text()) == whole
        fails(LedgerError, "ledger", "export", ledger, "-o", "out.json", match="never overwritten")

    def test_limit(self, ledger: str) -> None:
        said = ok("ledger", "limit", ledger, "claims", 5, "--collusion", 1)
        assert "at most ε = 5 at t = 1; ε = 4 is left" in said
        assert "below what is already spent" in run("ledger", "limit", ledger, "claims", 0.5).output
        arguments = ("ledger", "limit", "new.ledger", "claims", "5")
        fails(LedgerError, *arguments, match="absent")
        ok(*arguments, "--new")

    def test_verify(self, ledger: str) -> None:
        witness = ok("ledger", "verify", ledger).splitlines()[-1].removeprefix("witness ")
        ok("ledger", "verify", ledger, "--seen", witness)
        later = witness.replace(":2:", ":3:")
        fails(RollbackError, "ledger", "verify", ledger, "--seen", later, match="old copy")
        fails(ArgumentError, "ledger", "verify", ledger, "--seen", "x", match="not a witness")

    def test_keep(self, ledger: str, folder: Path) -> None:
        (folder / "backups").mkdir()
        for number in range(4):
            ok("ledger", "backup", ledger, f"backups/{number}", "--keep", 2)
        assert sorted(path.name for path in (folder / "backups").iterdir()) == ["2", "3"]

    def test_thaw(self, ledger: str) -> None:
        with Ledger(ledger) as made:
            made.freeze("two machines")
        assert json.loads(ok("ledger", "show", ledger, "--json"))["freezes"][0]["frozen"]
        thaw = ("ledger", "thaw", ledger, "--reason", "the clone is off")
        assert "ε" not in ok(*thaw, "--lost", "claims=0.5", "--json")
        shown = ok("ledger", "show", ledger)
        assert "thawed" in shown
        assert "FROZEN" not in shown
        with Ledger(ledger) as made:
            assert made.spent("claims").epsilon == 1.5

    def test_backup_and_restore(self, ledger: str, folder: Path) -> None:
        said = ok("ledger", "backup", ledger, "backup")
        assert said.startswith("backup: entries 1 to 2\nwitness ")
        with Ledger(ledger) as made:
            self.spend(made, "r2")
            seen = str(made.witness())
        (folder / ledger).rename(folder / "lost")
        restore = ("ledger", "restore", "backup", ledger, "--seen", seen)
        fails(ArgumentError, *restore, match="exactly one of")
        fails(ArgumentError, *restore, "--close", "--complete", match="exactly one of")
        fails(ArgumentError, *restore, "--lost", "claims", match="not LINEAGE=EPSILON")
        twice = ("--lost", "claims=1.5", "--lost", "claims=0.1")
        fails(ArgumentError, *restore, *twice, match="a lineage twice")
        fails(RollbackError, *restore, "--complete", match="the backup is not complete")
        ok(*restore, "--lost", "claims=1.5,1e-9")
        with Ledger(ledger) as made:
            assert made.spent("claims").epsilon == 2.5
        ok("ledger", "verify", ledger, "--seen", seen)
        (folder / ledger).unlink()
        assert "unbounded" in ok("ledger", "restore", "backup", ledger, "--close")


class TestTrail:
    @pytest.fixture
    def store(self, folder: Path) -> str:
        with closing(Store(Path("silo.db"), "north")) as made:
            trail = Trail(made)
            trail.decided(RUN, "policy", "accepted")
            trail.decided(bytes(16), "policy", "refused/policy")
            trail.spent(RUN, "claims", 1.5, 0.0, 1, 7, bytes(32))
            trail.ended(RUN, "done")
        return "silo.db"

    def events(self, *arguments: object) -> list[Any]:
        said = ok("trail", "show", *arguments, "--json")
        return [json.loads(line)["event"] for line in said.splitlines()]

    def test_show(self, store: str) -> None:
        assert self.events(store) == ["study.decided"] * 2 + ["budget.spent", "run.ended"]
        assert self.events(store, "--run", RUN.hex()) == [
            "study.decided", "budget.spent", "run.ended",
        ]  # fmt: skip
        assert self.events(store, "--event", "study") == ["study.decided"] * 2
        assert self.events(store, "--event", "stud") == []
        assert self.events(store, "-n", 1) == ["run.ended"]
        text = ok("trail", "show", store)
        assert text.splitlines()[-1].endswith(f" run.ended run={RUN.hex()} state=done")

    def test_what_was_spent_since_a_backup(self, store: str) -> None:
        """As the help of ``ledger restore`` has it."""
        said = ok("trail", "show", store, "--event", "budget.spent")
        assert "lineage=claims epsilon=1.5" in said
        assert "serial=7" in said

    def test_a_terminal_is_not_obeyed(self) -> None:
        from silograph.cli.trail import _line

        assert "\x1b" not in _line({"event": "\x1b[2J", "time": "y"})

    def test_verify(self, store: str) -> None:
        said = ok("trail", "verify", store)
        assert said.startswith("silo.db: whole, 4 entries\nmark 4:")
        mark = said.splitlines()[-1].removeprefix("mark ")
        ok("trail", "verify", store, "--mark", mark)
        fails(ArgumentError, "trail", "verify", store, "--mark", "4", match="not a mark")
        with closing(sqlite3.connect(store)) as raw:
            raw.execute("DROP TRIGGER trail_no_delete")
            raw.execute("DELETE FROM trail WHERE number = 4")
            raw.commit()
            ok("trail", "verify", store)
            fails(TrailError, "trail", "verify", store, "--mark", mark, match="is not in it")
            raw.execute("DELETE FROM trail WHERE number = 2")
            raw.commit()
        for command in ("show", "verify"):
            fails(TrailError, "trail", command, store, match="entry 3 .*removed or moved")

    def test_whose(self, store: str, folder: Path) -> None:
        """By a configuration, of a silo or of the coordinator; by one of both, or a file."""
        nodes = NodeUniverse.range(20)
        silos = [Silo.from_edges(nodes, [(0, 1)], name=name) for name in ("north", "south", "west")]
        trial = LocalDeployment(folder / "trial", silos, tls=False)
        for config in (trial.silo("north"), trial.coordinator()):
            fails(StoreError, "trail", "show", "--config", config.file, match="there is no state")
            config.state.mkdir()
            with closing(Store(config.store, config.name)) as made:
                Trail(made).ended(RUN, "done")
            assert self.events("-c", config.file) == ["run.ended"]
        for arguments in ((), (store, "--config", "x.toml")):
            fails(ArgumentError, "trail", "show", *arguments, match="say whose trail")


class TestHelper:
    """A party without edges, at the command line."""

    @pytest.fixture
    def trial(self, folder: Path) -> LocalDeployment:
        nodes = NodeUniverse.range(20)
        names = ("north", "south", "west")
        silos = [Silo.from_edges(nodes, [(0, 1)], name=name) for name in names]
        terms = Terms(committee=(*names, "notary"))
        return LocalDeployment(folder / "trial", silos, terms, tls=False, helpers=("notary",))

    @pytest.mark.parametrize("command", ["run", "check"])
    def test_the_roster_and_the_file_name_the_same_role(
        self, trial: LocalDeployment, command: str
    ) -> None:
        path = trial.folder / "roster.toml"
        helped = read_roster(path).change("north", "helper").change("notary", "silo")
        for name in ("hub", *trial.names, *trial.helpers):
            helped = helped.sign(keys.load_identity(trial.folder / f"{name}.key"))
        write_roster(path, helped)
        for name, role, other in (("north", "helper", "silo"), ("notary", "silo", "helper")):
            said = rf"{name} is a {role}, and .*{name}\.toml is the file of a {other}"
            config = trial.silo_file(name)
            if command == "run":
                fails(RosterError, "silo", command, "--config", config, match=said)
                continue
            done = run("silo", command, "--config", config)
            assert done.exit_code == 1
            assert re.search(rf"^failed +roster +.*{said}$", done.output, re.MULTILINE)

    def test_check(self, trial: LocalDeployment) -> None:
        done = run("silo", "check", "-c", trial.silo_file("notary"), "--json")
        assert done.exit_code == 1  # no broker
        found = json.loads(done.output)
        assert (found["helper"], found["silos"], found["helpers"]) == ("notary", 3, 1)
        assert found["committee"] == ["north", "south", "west", "notary"]
        assert not {"edges", "nodes", "spent", "silo"} & found.keys()
        said = run("silo", "check", "-c", trial.silo_file("notary")).output
        assert re.search(
            r"^ok +policy .*; committee north, south, west, notary$", said, re.MULTILINE
        )
        assert "edges" not in said
        assert "helper" in said

    def test_studies_and_trail(self, trial: LocalDeployment) -> None:
        config = trial.silo_file("notary")
        assert json.loads(ok("silo", "studies", "-c", config, "--json")) == []
        assert ok("trail", "show", "-c", config) == ""
        fails(ConfigError, "silo", "status", "-c", config, match="no service has written")
        fails(ConfigError, "study", "list", "-c", config, match="role is 'helper'")


def three_and_a_notary(folder: Path) -> LocalDeployment:
    nodes = NodeUniverse.range(20)
    silos = [Silo.from_edges(nodes, [(0, 1)], name=name) for name in ("north", "south", "west")]
    return LocalDeployment(folder / "trial", silos, tls=False, helpers=("notary",))


def test_members_of_a_committee(folder: Path) -> None:
    trial = three_and_a_notary(folder)
    propose = ("study", "propose", "edges", "--epsilon", "1", "--detach", "--protocol", "committee",
               "-c", trial.folder / "hub.toml")  # fmt: skip
    said = "'nobody' cannot be a member of the committee"
    fails(StudyError, *propose, "--members", "north,south,west,nobody", match=said)
    fails(StudyError, *propose, "--members", "north, south", match="four different members")
    fails(StudyError, *propose, "--silo", "north", "--silo", "south", match="there are 3 silos and")


def test_a_sealed_study(folder: Path) -> None:
    """A committee is chosen as for a union, and it is said what policies must allow."""
    trial = three_and_a_notary(folder)
    propose = ("study", "propose", "triangles", "--epsilon", "1", "--detach", "--method", "sealed",
               "-c", trial.folder / "hub.toml")  # fmt: skip
    ok(*propose, "--option", "rule=second", "--option", "answers=triangles", "--delta", "1e-6")
    ok(*propose, "--option", "noise=shares")
    noted = run_process(*map(str, propose))
    assert "δ = 8.67362e-19: every silo's policy and ledger must allow it; --delta 0" in " ".join(
        noted.stderr.split()
    )
    free = run_process(*map(str, propose), "--delta", "0")
    assert "δ" not in free.stderr
    inside = ("--members", "north,south,west,hub")
    fails(StudyError, *propose, *inside, match="holds against any one party")
    ok(*propose, *inside, "--collusion", "0")
    shares = ("--option", "noise=shares", "--option", "answers=triangles")
    fails(StudyError, *propose, *shares, "--option", "rule=second", match="a bound needs|lowers")


def test_help_names_every_command() -> None:
    said = run_process("--help").stdout
    for name in ("keys", "roster", "certs", "broker", "ledger", "trail"):
        assert re.search(rf"\b{name}\b", said)


def test_nothing_heavy_is_imported() -> None:
    """``import silograph`` and its commands load no network, TLS or certificate library."""
    import subprocess
    import sys

    code = (
        "import sys, silograph.cli.app, silograph.party.keys, silograph.party.certificates, "
        "silograph.nats.broker\n"
        "print([m for m in ('nats', 'cryptography', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_operators_in_json(roster: str, folder: Path) -> None:
    """Every command of an operator, as a program reads it: one line of JSON and nothing else."""

    def told(*words: object) -> Any:
        done = run(*words, "--json")
        assert done.exit_code == 0, (done.output, done.exception)
        assert done.stdout.count("\n") == 1
        return json.loads(done.stdout)

    key = told("keys", "new", "west.key")["key"]
    assert told("keys", "show", "west.key") | {"created": ""} == {
        "path": "west.key", "key": key, "sealed": False, "created": "",
    }  # fmt: skip
    assert [silo["name"] for silo in told("roster", "add", roster, "west", key)["silos"]] == [
        "north", "south", "west",
    ]  # fmt: skip
    text = told("roster", "digest", roster)["digest"]
    for name in ("hub", "north", "south", "west"):
        signed = told("roster", "sign", roster, "--identity", f"{name}.key", "--digest", text)
    assert signed["missing"] == []
    assert told("roster", "merge", roster, roster)["signed_by"] == signed["signed_by"]
    new = told("keys", "new", "west2.key")["key"]
    assert told("roster", "rotate", roster, "west", new)["serial"] == 2
    assert told("roster", "revoke", roster, "west", "--reason", "left")["revoked"][-1]["key"] == new
    assert told("roster", "new", "other.toml", "hub", key)["coordinator"]["key"] == key

    made = told("certs", "new", "--roster", roster, "--out", "certs")
    assert [Path(one["path"]).name for one in made][:2] == ["ca.pem", "broker.pem"]
    assert told("certs", "issue", "n2", "--out", "certs")[0]["subject"] == "CN=n2"
    assert told("certs", "show", "certs/n2.pem")[0]["days_left"] > 0
    files = told("broker", "config", "--roster", roster, "--out", "broker")["files"]
    assert [Path(path).name for path in files] == ["users.conf", "nats.conf"]

    limit = told("ledger", "limit", "l.ledger", "claims", 3, "--new")
    assert (limit["limit"]["epsilon"], limit["remaining"]["epsilon"]) == (3.0, 3.0)
    stood = told("ledger", "verify", "l.ledger")
    assert told("ledger", "backup", "l.ledger", "b") == stood | {"path": "b"}
    restored = told("ledger", "restore", "b", "r.ledger", "--complete")
    assert restored["lineages"][0]["lineage"] == "claims"

    with closing(Store(Path("silo.db"), "north")) as store:
        mark = Trail(store).ended(RUN, "done")
    assert told("trail", "verify", "silo.db") == {
        "path": "silo.db", "entries": 1, "mark": str(mark), "signed": 0, "not_enrolled": [],
    }  # fmt: skip
