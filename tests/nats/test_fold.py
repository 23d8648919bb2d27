"""Folded studies in deployments: answers, files and ledgers, and what silos refuse."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from silograph import Fold, FoldedRelease
from silograph.dp.loss import worst_losses
from silograph.errors import AbortedError, PolicyError, StudyError
from silograph.graph.samples import union
from silograph.ledger.book import Ledger
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.study import Index, Study
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.silo import SiloService
from tests.nats.test_committee import deployment, run
from tests.nats.world import silos, trial
from tests.support.local_deployment import HUB, LocalDeployment, Terms

#: All but exact: a wrong answer shows.
FOLD = Fold(16, [str(node) for node in range(36)])
ASKED = Question("edges", 20.0, fold=FOLD)
TERMS = Terms(epsilon=1000.0, study=100.0)


def changed(made: LocalDeployment, name: str, old: str, new: str) -> None:
    """Another line in the file of a party."""
    path = made.folder / f"{name}.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("protocol", ["masked", "committee"])
def test_it_answers(protocol: str, tmp_path: Path) -> None:
    members = ("silo-1", "silo-2", "silo-3", "notary")
    made = deployment(tmp_path, 3, members, 1)
    found = run(made, replace(ASKED, protocol=protocol))
    truth = len(union(silos(3)))
    assert abs(found["answer"]["value"] - truth) < 3
    assert found["study"]["index"]["kind"] == "fold"
    release = FoldedRelease.load(found["release"])
    assert (release.layout, release.hubs, release.nodes) == (FOLD.layout, FOLD.hubs, 40)
    assert release.ask("edges").value == found["answer"]["value"]
    assert release.provenance.run == found["study"]["run"]
    noise: Any = (MaskedNoise if protocol == "masked" else CommitteeNoise).choose(20.0, 3, 1)
    assert release.channel == noise.channel
    for name in made.names:
        with Ledger(made.silo(name).ledger.path) as ledger:
            (spend,) = ledger.rows()
        assert spend.losses == worst_losses(release.losses)
        assert spend.method == f"feat {protocol}"


def test_an_open_universe(tmp_path: Path) -> None:
    made = trial(tmp_path, TERMS, tls=False)
    for name in (HUB, *made.names):
        changed(made, name, 'universe = "nodes.txt"', 'universe = "open"')
    found = run(made, replace(ASKED, query="release"))
    assert found["study"]["nodes"] == 0
    release = FoldedRelease.load(found["release"])
    assert release.nodes == 0
    assert abs(release.edges().value - len(union(silos(3)))) < 3
    hub = CoordinatorService(made.coordinator())
    try:
        for question in (
            Question("edges", 1.0),
            Question("release", 1.0, method="hubs"),
            Question("triangles", 1.0, "baseline", ""),
        ):
            with pytest.raises(StudyError, match="an open universe has no list of nodes"):
                hub.propose(question, 30.0)
    finally:
        hub.close()


@pytest.mark.parametrize(
    ("line", "code"), [("fold = false", "policy"), ("largest = 1000", "policy")]
)
def test_a_policy_refuses(line: str, code: str, tmp_path: Path) -> None:
    made = trial(tmp_path, TERMS, tls=False)
    changed(made, "silo-2", "[policy]\n", f"[policy]\n{line}\n")
    with pytest.raises(AbortedError) as caught:
        run(made, ASKED)
    assert caught.value.code == code
    for name in made.names:
        with Ledger(made.silo(name).ledger.path) as ledger:
            assert list(ledger.rows()) == []
    found = run(made, Question("edges", 3.0))  # pairs are still allowed
    assert found["answer"] is not None


class TestWhatASiloChecks:
    @pytest.fixture
    def parties(self, tmp_path: Path) -> Iterator[Any]:
        made = trial(tmp_path, TERMS, tls=False)
        hub, silo = CoordinatorService(made.coordinator()), SiloService(made.silo("silo-1"))
        yield hub, silo
        hub.close()
        silo.close()

    def study(self, parties: Any, **changes: Any) -> Study:
        made: Study = parties[0].propose(ASKED, 60.0).study
        return replace(made, **changes)

    def test_a_fair_study_passes(self, parties: Any) -> None:
        parties[1]._check(self.study(parties))
        parties[1]._check(self.study(parties, index=Index("fold", 9, (), 1, "strip=0;case=none")))

    @pytest.mark.parametrize(
        ("index", "words"),
        [
            (Index("fold", 60, (), 1, "strip=1;case=none"), "identifiers are 'strip=1"),
            (Index("fold", 60, (), 1, "digits"), "identifiers are 'digits'"),
            (Index("fold", 60, ("40",), 1, "strip=0;case=none"), "a hub of the study is not"),
            (Index("fold", 60, (" 3",), 1, "strip=0;case=none"), "a hub of the study is not"),
            (Index("fold", 60, ("03",), 1, "strip=0;case=none"), "a hub of the study is not"),
        ],
    )
    def test_other_identifiers(self, index: Index, words: str, parties: Any) -> None:
        with pytest.raises(StudyError, match=re.escape(words)):
            parties[1]._check(self.study(parties, index=index))

    @pytest.mark.parametrize("change", [{"nodes": 0}, {"nodes": 41}, {"universe": "ab" * 32}])
    def test_another_node_list(self, change: dict[str, Any], parties: Any) -> None:
        with pytest.raises(StudyError, match="another node list"):
            parties[1]._check(self.study(parties, **change))

    def test_terms_come_before_sizes(self, parties: Any) -> None:
        large = Index("fold", 100_000, (), 3, "strip=0;case=none")
        silo = parties[1]
        policy = replace(silo._config.policy, largest=10**6)
        with pytest.raises(PolicyError, match="pairs or buckets; at most 1,000,000"):
            policy.check_fields(self.study(parties, index=large), 3, silo._party.clock())
        with pytest.raises(PolicyError, match="folds nodes, which is not allowed here"):
            replace(policy, fold=False).check_fields(self.study(parties), 3, silo._party.clock())
        policy.check_fields(self.study(parties), 3, silo._party.clock())

    @pytest.mark.parametrize(
        ("question", "words"),
        [
            (replace(ASKED, fold=Fold(60, 5)), "find them first"),
            (replace(ASKED, fold=Fold(60, ["nobody"])), "not in the universe"),
            (replace(ASKED, protocol="elgamal/blinded"), "counts on pairs"),
            (replace(ASKED, query="degrees"), "do not answer degrees"),
            (replace(ASKED, query="kstars", k=3), "k = 1 and 2"),
            (replace(ASKED, method="feat+"), "counts on pairs"),
            (replace(ASKED, method="hubs", query="release"), "counts on pairs"),
        ],
    )
    def test_what_is_not_proposed(self, question: Question, words: str, parties: Any) -> None:
        with pytest.raises(StudyError, match=words):
            parties[0].propose(question, 60.0)


def test_a_silo_that_stops_in_between_sends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is made again from the secret and the messages folds to the same bits."""
    made = trial(tmp_path, TERMS, tls=False)
    hub = CoordinatorService(made.coordinator())
    study = hub.propose(ASKED, 60.0).study
    hub.close()
    service = SiloService(made.silo("silo-1"))
    try:
        first, again = (
            service._plan(study).silo(
                study.parties(service._party.roster), 0, service._party.identity,
                _Same(), service.silo,
            )
            for _ in range(2)
        )  # fmt: skip
        for session in (first, again):
            session._view = b"what all signed"  # type: ignore[attr-defined]
        bits = [session._bits(session._view, 0) for session in (first, again)]  # type: ignore[attr-defined]
        assert bits[0] == bits[1]
        other = first._bits(b"what others signed", 0)  # type: ignore[attr-defined]
        assert other != bits[0]
    finally:
        service.close()


class _Same:
    def bytes(self, count: int) -> bytes:
        return bytes(count)
