"""Decisions that people answer for: signed, with a reason, and bound to one study at one party.

What
    A party's configuration may enrol people by name and public key (``[[approvers]]``). A
    :class:`Vote` is what one of them said about a study: the run, the digest of the study, the
    decision, a reason, the time, the party and the person's name, signed with the person's key.
    Votes are entries of the audit trail (event ``study.vote``). A policy may ask for several
    different keys (``approvals = 2``); one refusal is enough to refuse.
Guarantee
    A service accepts a study that waits for people only if the trail holds valid votes of as many
    enrolled keys as the policy wants (:func:`check_approved`). A vote cannot be moved to another
    run, study, party, decision or reason, or be counted twice: :func:`check_votes` finds it.
Without enrolled people
    The operator of the machine decides, as whoever may write the party's store can. A reason can be
    given; it stands in the trail without a signature.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from silograph.errors import (
    ArgumentError,
    PolicyError,
    SignatureError,
    StudyError,
    TrailError,
)
from silograph.messages.identity import Identity, Member, pack, verify
from silograph.methods.study import Study, read_proposal
from silograph.party.log import LONGEST_WHY
from silograph.party.policy import Policy
from silograph.party.store import Run, Store
from silograph.party.trail import Trail

__all__ = [
    "ABORTED",
    "ACCEPTED",
    "OPERATOR",
    "PROPOSED",
    "REFUSED",
    "RESERVED",
    "Decided",
    "Vote",
    "check_approved",
    "check_reason",
    "check_votes",
    "decide",
    "enrolled",
    "find_study",
    "record",
    "votes_of",
]

#: What people say about a study: silos and helpers the first two, coordinators the others.
ACCEPTED, REFUSED, PROPOSED, ABORTED = "accepted", "refused", "proposed", "aborted"
#: The name in the trail of somebody who works at the party's machine and has no key.
OPERATOR = "operator"
#: Names that a trail uses for others than people.
RESERVED = frozenset({OPERATOR, "policy", "deadline"})
EVENT = "study.vote"


@dataclass(frozen=True)
class Vote:
    """What one person said about a study. The operator's votes have no key and no signature."""

    run: str
    study: str
    party: str
    decision: str
    reason: str
    time: str
    by: str
    key: str = ""
    signature: str = ""

    @property
    def signed(self) -> bool:
        """Whether the vote carries a signature."""
        return bool(self.signature)

    def _text(self) -> bytes:
        """The bytes that are signed."""
        words = (self.decision, self.reason, self.time, self.party, self.by)
        return pack(
            b"silograph/vote/v1", bytes.fromhex(self.run), bytes.fromhex(self.study),
            *(word.encode() for word in words),
        )  # fmt: skip

    def sign(self, identity: Identity) -> "Vote":
        """The same vote with a person's signature."""
        signature = identity.sign(self._text()).hex()
        return Vote(**{**vars(self), "key": identity.public.hex(), "signature": signature})

    def check(self) -> None:
        """Raise :class:`SignatureError` unless the signature is that of the key beside it."""
        key, signature = bytes.fromhex(self.key), bytes.fromhex(self.signature)
        verify(key, self._text(), signature, who=self.by)


@dataclass(frozen=True)
class Decided:
    """What became of a study after a vote."""

    study: Study
    #: ``accepted`` or ``refused``; empty while more approvals are needed.
    decision: str
    #: How many more approvals the policy wants.
    missing: int = 0

    @property
    def words(self) -> str:
        """What to tell the person who decided."""
        if self.decision:
            return f"{self.decision}; the service acts on it"
        more = "approval" if self.missing == 1 else "approvals"
        return f"approved; the policy wants {self.missing} more {more}, by another key"


# --- Voting ---------------------------------------------------------------------------------------


def check_reason(reason: str) -> str:
    """A reason without space around it, if it can stand in a trail."""
    reason = reason.strip()
    if len(reason) > LONGEST_WHY or not reason.isprintable():
        raise ArgumentError(f"a reason is one line of at most {LONGEST_WHY} printable characters")
    return reason


def enrolled(people: Sequence[Member], key: Identity | None, reason: str) -> Member | None:
    """The person who holds a key; None for the operator, where nobody is enrolled."""
    if not people:
        if key is not None:
            raise PolicyError("the configuration enrols no approvers: [[approvers]] is missing")
        return None
    if key is None:
        raise PolicyError(
            "the configuration enrols approvers: this must be signed with the key of one (--key)"
        )
    if not reason:
        raise PolicyError("a decision that is signed must have a reason (--reason)")
    for person in people:
        if person.public == key.public:
            return person
    raise PolicyError("this key is not that of an approver whom the configuration enrols")


def record(
    trail: Trail,
    study: Study,
    party: str,
    decision: str,
    reason: str,
    key: Identity | None,
    person: Member | None,
    clock: Callable[[], float] = time.time,
) -> Vote:
    """Write a vote to the trail, signed if there is a person."""
    moment = datetime.fromtimestamp(clock(), UTC).isoformat(timespec="milliseconds")
    by = OPERATOR if person is None else person.name
    vote = Vote(study.run, study.digest.hex(), party, decision, reason, moment, by)
    if key is not None and person is not None:
        vote = vote.sign(key)
    trail.voted(
        study.id, study.digest, party, by, decision, reason or None, moment,
        vote.key or None, vote.signature or None,
    )  # fmt: skip
    return vote


def find_study(store: Store, run: str) -> tuple[Study, Run]:
    """The study whose run id begins with ``run``."""
    rows = [row for row in store.runs() if run and row.run.startswith(run)]
    found = [(study, row) for row in rows if (study := read_proposal(row.proposal))]
    if len(found) != 1:
        raise StudyError(f"{len(found) or 'no'} studies begin with {run!r}")
    return found[0]


def decide(
    store: Store,
    party: str,
    policy: Policy,
    people: Sequence[Member],
    run: str,
    decision: str,
    *,
    reason: str = "",
    key: Identity | None = None,
    clock: Callable[[], float] = time.time,
) -> Decided:
    """Approve or refuse a study, or end one that is running; the service acts on it.

    The vote and what follows from it are written together.
    """
    reason = check_reason(reason)
    person = enrolled(people, key, reason)
    trail = Trail(store, clock)
    with store.together():
        study, row = find_study(store, run)
        if not row.open:
            raise StudyError(f"study {study.run[:12]} is over: {row.state}")
        if row.decision and decision == ACCEPTED:
            raise StudyError(f"study {study.run[:12]} is already {row.decision}")
        if row.decision == "abort":
            raise StudyError(f"study {study.run[:12]} is already being ended")
        before = _approvals(votes_of(trail, study.run), study, party, people)
        if person is not None and decision == ACCEPTED and person.public.hex() in before:
            raise StudyError(f"{person.name} has approved study {study.run[:12]} already")
        if person is not None or reason:
            record(trail, study, party, decision, reason, key, person, clock)
        missing = 0
        if decision == ACCEPTED and person is not None:
            missing = max(policy.approvals - len(before) - 1, 0)
        if missing:
            return Decided(study, "", missing)
        names = [*before.values(), person.name] if person is not None else [OPERATOR]
        by = ",".join(names if decision == ACCEPTED else names[-1:])
        store.decide(study.run, "abort" if row.decision else decision, by)
    return Decided(study, decision)


# --- Reading --------------------------------------------------------------------------------------


def votes_of(trail: Trail, run: str | None = None) -> list[Vote]:
    """The votes in a trail, oldest first, of one run or of all."""
    return [
        _vote(entry)
        for entry in trail.entries()
        if entry["event"] == EVENT and run in (None, entry.get("run"))
    ]


def _vote(entry: dict[str, object]) -> Vote:
    names = ("run", "study", "party", "code", "why", "moment", "by", "signer", "signature")
    return Vote(*(str(entry.get(name, "")) for name in names))


def _approvals(
    votes: Iterable[Vote], study: Study, party: str, people: Sequence[Member]
) -> dict[str, str]:
    """The names of those whose last word is an approval, by key; all valid, of enrolled keys."""
    known = {person.public.hex(): person.name for person in people}
    found: dict[str, str] = {}
    for vote in votes:
        if (vote.study, vote.party) != (study.digest.hex(), party) or vote.key not in known:
            continue
        try:
            vote.check()
        except SignatureError:
            continue
        found.pop(vote.key, None)
        if vote.decision == ACCEPTED:
            found[vote.key] = known[vote.key]
    return found


def check_approved(
    trail: Trail, study: Study, party: str, policy: Policy, people: Sequence[Member]
) -> None:
    """Raise unless as many enrolled people as the policy wants have approved a study."""
    if not people:
        return
    found = _approvals(votes_of(trail, study.run), study, party, people)
    if len(found) < policy.approvals:
        raise PolicyError(
            f"the trail has {len(found)} valid approvals of enrolled keys; the policy wants "
            f"{policy.approvals}"
        )


def check_votes(trail: Trail, people: Sequence[Member] = ()) -> list[Vote]:
    """Verify all votes of a trail; returns those that are signed by keys not enrolled now.

    Each must be signed by its key, and be about the study that was proposed under its run. Raises
    a :class:`TrailError` for the first that is not so. A key that is not enrolled now may have been
    enrolled when the vote was cast: the configuration tells, not the trail.
    """
    known = {person.public.hex(): person.name for person in people}
    studies: dict[str, str] = {}
    strangers: list[Vote] = []
    for entry in trail.entries():
        if entry["event"] == "study.proposed":
            studies[str(entry.get("run"))] = str(entry.get("study"))
        if entry["event"] != EVENT:
            continue
        vote, where = _vote(entry), f"{trail.path}: entry {entry['number']}"
        if vote.study != studies.get(vote.run):
            raise TrailError(f"{where}: a vote about another study than the one that was proposed")
        if vote.party != trail.party:
            raise TrailError(f"{where}: a vote at {vote.party}, and this is the trail of another")
        if not vote.signed:
            if vote.by != OPERATOR:
                raise TrailError(f"{where}: the vote of {vote.by} is not signed")
            continue
        try:
            vote.check()
        except (SignatureError, ValueError):
            raise TrailError(f"{where}: the signature is not that of {vote.by}") from None
        if known.get(vote.key) != vote.by:
            strangers.append(vote)
    return strangers
