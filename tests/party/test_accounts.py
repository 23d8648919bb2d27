"""A ledger that is restored after studies: the service starts on it, and nothing is given back."""

import json
import math
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from silograph.cli.app import app
from silograph.errors import (
    ArgumentError,
    BudgetError,
    ClonedError,
    PolicyError,
    RollbackError,
    TrailError,
)
from silograph.ledger.book import Ledger
from silograph.methods.study import read_proposal
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.silo import SiloService
from silograph.party.accounts import records_of
from silograph.party.approval import REFUSED, decide
from silograph.party.opened import open_store
from tests.nats.world import trial
from tests.support.local_deployment import LocalDeployment

EPSILON = 3.0


def command(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def spend(made: LocalDeployment, count: int) -> None:
    """Let a silo pay for studies, as its service does before anything leaves the house."""
    hub = CoordinatorService(made.coordinator())
    service = SiloService(made.silo("silo-1"))
    for _ in range(count):
        study = hub.propose(Question("edges", EPSILON), 30.0).study
        service._store.add(study.run, hub.find(study.run)[1].proposal)
        service._books.pay(service._plan(study))
    service.close()
    hub.close()


class Lost:
    """A silo that paid for one study before a backup and for two after it, and lost its ledger."""

    def __init__(self, folder: Path) -> None:
        self.made = trial(folder, tls=False)
        self.config = self.made.silo("silo-1")
        self.path = self.config.ledger.path
        self.backup = folder / "backup"
        spend(self.made, 1)
        assert command("ledger", "backup", self.path, self.backup).exit_code == 0
        spend(self.made, 2)
        with Ledger(self.path) as ledger:
            self.rows = ledger.rows()
            self.seen = str(ledger.witness())
            self.spent = [ledger.spent("trial", level).epsilon for level in range(3)]
        self.path.rename(folder / "lost")

    def restore(self, *words: object, config: bool = True) -> Result:
        more = ("--config", self.config.file) if config else ()
        return command("ledger", "restore", self.backup, self.path, *words, *more)

    def remove(self) -> None:
        for path in self.path.parent.glob(f"{self.path.name}*"):
            path.unlink()

    def start(self) -> Ledger:
        """Start the service twice, and return the ledger."""
        for _ in range(2):
            SiloService(self.config).close()
        return Ledger(self.path)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Lost:
    return Lost(tmp_path_factory.mktemp("lost"))


@pytest.fixture
def lost(original: Lost) -> Lost:
    """The same files for every test: state and ledger as they were when the ledger was lost."""
    kept = original.config.state.with_name("kept.state")
    if not kept.exists():
        shutil.copytree(original.config.state, kept)
    shutil.rmtree(original.config.state)
    shutil.copytree(kept, original.config.state)
    original.remove()
    return original


class TestFromTheTrail:
    def test_every_spend_is_back(self, lost: Lost) -> None:
        """The documented way, to the service's start: the very spends, and the witness kept."""
        done = lost.restore("--complete")
        assert done.exit_code == 0, done.exception
        with lost.start() as ledger:
            assert [(row.run, row.losses, row.method) for row in ledger.rows()] == [
                (row.run, row.losses, row.method) for row in lost.rows
            ]
            assert [ledger.spent("trial", level).epsilon for level in range(3)] == lost.spent
            assert "counted" in ledger.export()["restores"][0]["statement"]
        assert command("ledger", "verify", lost.path, "--seen", lost.seen).exit_code == 0
        spend(lost.made, 1)  # and the silo goes on

    def test_more_than_the_trail_shows(self, lost: Lost) -> None:
        assert lost.restore("--lost", f"trial={2 * EPSILON + 4}").exit_code == 0
        with lost.start() as ledger:
            spent = ledger.spent("trial").epsilon
            assert spent == pytest.approx(lost.spent[1] + 4, abs=1e-12)
            assert spent >= lost.spent[1] + 4

    @pytest.mark.parametrize("said", ["0", "5.9", "3"])
    def test_less_than_the_trail_shows(self, lost: Lost, said: str) -> None:
        done = lost.restore("--lost", f"trial={said}")
        assert isinstance(done.exception, ArgumentError)
        assert re.search(r"trail shows ε = 6 at t = 1", str(done.exception))
        assert not lost.path.exists()

    @pytest.mark.filterwarnings("ignore::silograph.errors.LedgerWarning")
    def test_closed(self, lost: Lost) -> None:
        assert lost.restore("--close").exit_code == 0
        with lost.start() as ledger:
            assert ledger.spent("trial").epsilon == math.inf
            assert len(ledger.rows()) == 4
            with pytest.raises(BudgetError):
                ledger.spend("trial", "r", "release", {1: 1e-9}, view="any", method="feat")

    def test_entries_that_the_trail_does_not_have(self, lost: Lost, tmp_path: Path) -> None:
        """A run of another program stood between: the trail alone is not complete."""
        later = lost.seen.replace(":4:", ":5:")
        done = lost.restore("--complete", "--seen", later)
        assert isinstance(done.exception, RollbackError)
        assert "entry 5 was seen, of which the audit trail shows 2" in str(done.exception)
        assert lost.restore("--lost", "trial=7", "--seen", later).exit_code == 0
        lost.start().close()

    def test_a_trail_that_was_changed(self, lost: Lost) -> None:
        with closing(open_store(lost.config)) as store, store.together() as connection:
            connection.execute("DROP TRIGGER trail_no_update")
            connection.execute("UPDATE trail SET content = replace(content, 'trial', 'trail')")
        done = lost.restore("--complete")
        assert isinstance(done.exception, TrailError)
        assert not lost.path.exists()

    def test_a_study_that_can_no_longer_be_settled(
        self, lost: Lost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The trail has its loss at one level: it counts below, and above there is no bound."""
        monkeypatch.setattr("silograph.party.accounts.read_proposal", lambda raw: None)
        with closing(open_store(lost.config)) as store:
            losses = records_of(store).spends[1].losses
        assert dict(losses) == {1: lost.rows[1].losses[1]}
        assert lost.restore("--complete").exit_code == 0
        with Ledger(lost.path) as ledger:
            assert ledger.spent("trial", 1).epsilon == lost.spent[1]
            assert ledger.spent("trial", 0).epsilon >= lost.spent[0]
            assert ledger.spent("trial", 2).epsilon == math.inf


class TestByHand:
    """With the witness that an operator noted, and without the audit trail."""

    @pytest.mark.filterwarnings("ignore::silograph.errors.LedgerWarning")
    @pytest.mark.parametrize("words", [("--lost", "trial=6"), ("--close",)])
    def test_enough(self, lost: Lost, words: tuple[str, ...]) -> None:
        assert lost.restore(*words, "--seen", lost.seen, config=False).exit_code == 0
        with lost.start() as ledger:
            assert ledger.spent("trial").epsilon >= lost.spent[1]

    def test_too_little(self, lost: Lost) -> None:
        """The service refuses it with the figure; restoring it again from the trail helps."""
        assert lost.restore("--lost", "trial=1", "--seen", lost.seen, config=False).exit_code == 0
        with pytest.raises(RollbackError, match=r"shows ε = \S+ of .*ε = 1 is counted as lost"):
            SiloService(lost.config)
        lost.remove()
        assert lost.restore("--complete").exit_code == 0
        lost.start().close()

    def test_without_the_witness(self, lost: Lost) -> None:
        assert lost.restore("--lost", "trial=6", config=False).exit_code == 0
        with pytest.raises(RollbackError, match="restore --config"):
            SiloService(lost.config)


def test_a_refusal_in_the_last_moment_costs_nothing(tmp_path: Path) -> None:
    """The service looks for refusals now and then; when it pays, it looks once more."""
    made = trial(tmp_path, tls=False)
    hub, service = CoordinatorService(made.coordinator()), SiloService(made.silo("silo-1"))
    study = hub.propose(Question("edges", EPSILON), 30.0).study
    service._store.add(study.run, hub.find(study.run)[1].proposal)
    service._accept(study, "policy")
    decide(service._store, "silo-1", service._config.policy, (), study.run, REFUSED)
    with pytest.raises(PolicyError, match="refused after"):
        service._agree(service._plan(study))
    assert service._ledger.rows() == []
    service.close()
    hub.close()


def test_as_json(lost: Lost) -> None:
    found = json.loads(lost.restore("--complete", "--json").stdout)
    assert found["lineages"][0]["spends"] == 3
    assert found["freezes"] == []


class TestPutBack:
    """A copy of the ledger's file that has all spends, but is older than what came after them."""

    @pytest.fixture
    def copy(self, lost: Lost, tmp_path: Path) -> Path:
        assert lost.restore("--complete").exit_code == 0
        lost.start().close()
        return Path(shutil.copy(lost.path, tmp_path))

    def put_back(self, lost: Lost, copy: Path) -> None:
        lost.remove()
        shutil.copy(copy, lost.path)
        with pytest.raises(RollbackError, match="an old copy"):
            SiloService(lost.config)

    def test_does_not_thaw(self, lost: Lost, copy: Path) -> None:
        service = SiloService(lost.config)
        study = read_proposal(service._store.runs()[-1].proposal)
        assert study is not None
        service._cloned(study, ClonedError("a second machine", silo="silo-1"))
        service.close()
        self.put_back(lost, copy)

    def test_does_not_raise_a_limit(self, lost: Lost, copy: Path) -> None:
        assert command("ledger", "limit", lost.path, "trial", "20").exit_code == 0
        lost.start().close()
        self.put_back(lost, copy)

    def test_is_not_replaced_by_an_empty_one(self, lost: Lost) -> None:
        with pytest.raises(RollbackError, match="there is no ledger"):
            SiloService(lost.config)
        assert not lost.path.exists()
        assert lost.restore("--complete").exit_code == 0
