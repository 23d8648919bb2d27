"""Bugs in a deployment: studies, policies, stores, what is sent again, what is believed."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_STUDY = "src/silograph/methods/study.py"
_RUNTIME = "src/silograph/runtime/"

_STUDIES = "pytest tests/methods/test_study.py"
_SESSIONS = "pytest tests/methods/test_sessions.py"
_POLICY = "pytest tests/party/test_policy.py"
_STORE = "pytest tests/party/test_store.py"
_CONTROL = "pytest tests/party/test_control.py"
_CARRIER = "pytest tests/nats/test_carrier.py"
_SERVICE = "pytest tests/nats/test_service.py"
_HOSTILE = "pytest tests/nats/test_hostile.py"

BUGS = [
    Bug(
        "parameters that do not know their study",
        "a study's terms can change after it was accepted",
        _STUDY,
        'parts = (b"silograph/subject/v2", bytes.fromhex(self.universe), self.digest)',
        'parts = (b"silograph/subject/v2", bytes.fromhex(self.universe))',
        _STUDIES,
    ),
    Bug(
        "a study in several forms",
        "two parties read one digest's study in two ways",
        _STUDY,
        "        if not whole:",
        "        if not whole and not study:",
        _STUDIES,
    ),
    Bug(
        "anyone proposes",
        "a proposal's signature is not looked at",
        _STUDY,
        "    opened = open_envelope(binding, raw, receiver=EVERYONE)\n",
        "    opened = message\n",
        _STUDIES,
    ),
    Bug(
        "printed in a deployment",
        "the paper's protocol, which costs m·ε, is carried out",
        "src/silograph/methods/study.py",
        'LOCAL_PROTOCOLS = ("clear", "elgamal/printed")',
        'LOCAL_PROTOCOLS = ("clear",)',
        _STUDIES,
    ),
    Bug(
        "two messages under one name",
        "chunks of the ElGamal union overwrite each other",
        "src/silograph/methods/elgamal/rounds.py",
        "        return int(chunk * parameters.hops + hop)\n",
        "        return int(chunk)\n",
        _SESSIONS,
    ),
    Bug(
        "replace among silos that do not trust each other",
        "silos see each other's edges",
        "src/silograph/party/policy.py",
        'if plan.protocol == "elgamal/replace" and not self.silos_trust_each_other:',
        'if plan.protocol == "elgamal/printed" and not self.silos_trust_each_other:',
        _POLICY,
    ),
    Bug(
        "too little collusion",
        "a study that holds against fewer silos than the policy asks for",
        "src/silograph/party/policy.py",
        "if study.collusion < self.least_collusion:",
        "if study.collusion + 1 < self.least_collusion:",
        _POLICY,
    ),
    Bug(
        "a policy that is not asked",
        "a silo takes part in whatever is proposed",
        "src/silograph/nats/silo.py",
        """        policy.check_fields(study, len(roster.silos), self._party.clock())
        policy.check_committee(study, roster)
        plan = self._plan(study)
        policy.check(plan)
""",
        "        plan = self._plan(study)\n",
        _HOSTILE + " -k beyond",
    ),
    Bug(
        "a policy that is asked last",
        "whatever is proposed is computed with before it is refused",
        "src/silograph/nats/silo.py",
        "        policy.check_fields(study, len(roster.silos), self._party.clock())\n",
        "",
        "pytest tests/nats/test_proposals.py -k bare_fields",
    ),
    Bug(
        "a committee of anyone",
        "a study chooses two members that pool what they see",
        "src/silograph/party/policy.py",
        "        for name in sorted({member.name for member in study.members} - pinned.keys()):\n",
        "        for name in sorted({member.kind for member in study.members} & pinned.keys()):\n",
        _POLICY,
    ),
    Bug(
        "a member by its name alone",
        "a roster with another key puts another party on the committee",
        "src/silograph/party/policy.py",
        "            if found.public != wanted.public:\n",
        "            if not found.public:\n",
        _POLICY,
    ),
    Bug(
        "one organisation twice on a committee",
        "two members that pool what they see are one party",
        "src/silograph/party/policy.py",
        '            ("an organisation", {member.organisation for member in self.committee}),\n',
        "",
        _POLICY,
    ),
    Bug(
        "a coordinator on the committee",
        "the coordinator and one silo see the union",
        "src/silograph/party/policy.py",
        "        if self.least_collusion > 0:\n",
        "        if self.least_collusion > 1:\n",
        _POLICY,
    ),
    Bug(
        "edges of today in a run of yesterday",
        "messages that are made again depend on other edges",
        "src/silograph/party/snapshots.py",
        "return self._silo if digest == self.digest else self._read(digest)",
        "return self._silo",
        _SERVICE + " -k changed_edges",
    ),
    Bug(
        "a digest of edges in the log",
        "whoever reads the log can check a guess of the edges",
        "src/silograph/party/snapshots.py",
        'f"{self._folder}: the edges that the run began with are damaged',
        'f"{path}: the edges that the run began with are damaged',
        "pytest tests/party/test_snapshots.py",
    ),
    Bug(
        "edges of others in an open universe",
        "a snapshot whose ids were changed passes for the edges of the run",
        "src/silograph/party/snapshots.py",
        "        parts.append(silo.nodes.digest.encode())\n",
        "        pass\n",
        "pytest tests/party/test_snapshots.py -k open",
    ),
    Bug(
        "parts that replace each other",
        "of a silo in parts only the last part is counted",
        "src/silograph/graph/partitioned.py",
        "                words |= folding.fold(held.nodes, held.pairs)",
        "                words = folding.fold(held.nodes, held.pairs)",
        "pytest tests/graph/test_partitioned.py -k parts_have",
    ),
    Bug(
        "members that end each other's runs",
        "one member can end a run in the coordinator's name",
        "src/silograph/nats/part.py",
        "word = self._word(raw, place) if place == COORDINATOR else None",
        "word = self._word(raw, place)",
        "pytest tests/nats/test_direct.py -k only_the_coordinator",
    ),
    Bug(
        "streams that are removed too early",
        "a member that restarts at the end waits in vain for what others sent",
        "src/silograph/nats/sweep.py",
        "    if waiting:\n        return False\n",
        "",
        "pytest tests/nats/test_direct.py -k silo.received",
    ),
    Bug(
        "a message made anew",
        "two vectors under one mask leave the silo",
        "src/silograph/party/store.py",
        "        if known[0] != digest:\n",
        "        if not known[0]:\n",
        _STORE,
    ),
    Bug(
        "a secret that is kept",
        "whoever gets the store later can take the masks off",
        "src/silograph/party/store.py",
        '"UPDATE runs SET secret = NULL, state = ?, code = ? WHERE run = ?",',
        '"UPDATE runs SET state = ?, code = ? WHERE run = ?",',
        _STORE,
    ),
    Bug(
        "a run id used twice",
        "the secret of one run serves another",
        "src/silograph/party/store.py",
        "        if known.proposal != proposal:\n",
        "        if not proposal:\n",
        _STORE,
    ),
    Bug(
        "what was taken is forgotten",
        "after a restart a silo can be shown other keys",
        "src/silograph/party/store.py",
        "                for run, note in self._notes:\n                    _note(self._connection, run, note)\n",
        "",
        _CARRIER,
    ),
    Bug(
        "other content under an old name",
        "after a restart a silo puts its bits under other masks",
        "src/silograph/nats/carrier.py",
        "        if known is not None and known != digest:\n",
        "        if known is not None and not digest:\n",
        _CARRIER,
    ),
    Bug(
        "a replay in any order",
        "a restarted coordinator takes answers before what they answer to",
        "src/silograph/nats/carrier.py",
        "        self._replay = deque(self._known)\n",
        "        self._replay: deque[Name] = deque()\n",
        _CARRIER,
    ),
    Bug(
        "sent before it is frozen",
        "after a crash nobody knows what was sent",
        "src/silograph/nats/carrier.py",
        "        frozen = self._store.step(self.run, taken, messages, acked)\n",
        "        frozen = messages\n",
        _CARRIER,
    ),
    Bug(
        "entropy of a run that stands still",
        "every secret of a run is the same",
        "src/silograph/messages/entropy.py",
        "        self._drawn += 1\n",
        "",
        _STORE,
    ),
    Bug(
        "uploads without a spend",
        "edges are paid for by nobody",
        "src/silograph/nats/silo.py",
        "        spend = books.ledger.spend(\n",
        '        spend = __import__("silograph").runtime.ledger.NoLedger().spend(\n',
        _SERVICE + " -k stopped_in_the_middle",
    ),
    Bug(
        "an old store is taken",
        "runs that were paid for begin again with new secrets",
        "src/silograph/nats/silo.py",
        "        if paid.keys() - {run.run for run in runs}:\n",
        "        if not paid and runs is None:\n",
        _SERVICE + " -k old_store",
    ),
    Bug(
        "a run that the ledger knows",
        "a new store takes part in an old run again",
        "src/silograph/nats/silo.py",
        "        if any(row.run == study.run for row in self._ledger.rows()):\n",
        "        if any(row.run is study for row in self._ledger.rows()):\n",
        _SERVICE + " -k same_run_again",
    ),
    Bug(
        "more than once",
        "what stands under a name already is not noticed",
        "src/silograph/nats/link.py",
        'headers = {"Nats-Expected-Last-Subject-Sequence": "0"}',
        "headers: dict[str, str] = {}",
        _HOSTILE + " -k squatted",
    ),
    Bug(
        "a code that tells more",
        "what goes out depends on more than the kind of refusal",
        "src/silograph/party/control.py",
        "bytes([self.code]))",
        "bytes([self.code]) * max(self.code, 1))",
        _CONTROL,
    ),
]
