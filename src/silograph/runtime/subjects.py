"""Names on the broker: subjects, streams and inboxes.

A subject is a routing hint and never proof. Whoever can connect can have messages delivered under
names that are not theirs; what is believed is the signed envelope. Permissions on these names keep
honest mistakes apart and make noise visible.

A message travels on ``silograph.RUN.SENDER.RECEIVER.ROUND.SEQUENCE``, each a single word: the run
id in hexadecimal, the parties' names from the roster (or ``all``), and the envelope's round and
sequence. Proposals travel on ``silograph.studies``.
"""

import re

from silograph.errors import ArgumentError

__all__ = ["ALL", "PREFIX", "STUDIES", "inbox", "message", "own_messages"]

PREFIX = "silograph"
#: The receiver of what is meant for everyone.
ALL = "all"
#: Where coordinators propose studies.
STUDIES = f"{PREFIX}.studies"

_WORD = re.compile(r"[a-z0-9_-]{1,64}")


def message(run: bytes, sender: str, receiver: str, round_name: str, sequence: int) -> str:
    """The subject of one message.

    >>> message(bytes(16), "north", ALL, "keys", 0)
    'silograph.00000000000000000000000000000000.north.all.keys.0'
    """
    words = (run.hex(), sender, receiver, round_name, str(sequence))
    for word in words:
        if not _WORD.fullmatch(word):
            raise ArgumentError(f"{word[:80]!r} cannot stand in a subject")
    return ".".join((PREFIX, *words))


def own_messages(sender: str) -> str:
    """All messages of one sender, in all runs."""
    return f"{PREFIX}.*.{sender}.>"


def inbox(party: str) -> str:
    """The prefix of a party's inboxes: answers to one party are not delivered to another.

    >>> inbox("north")
    '_INBOX_north'
    """
    return f"_INBOX_{party}"
