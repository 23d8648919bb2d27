"""A party with its files open: identity, current roster, node list, store, audit trail, log."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from silograph.errors import ConfigError, RosterError, StoreError
from silograph.graph.universe import NodeUniverse
from silograph.messages.identity import Identity
from silograph.party.config import PartyConfig
from silograph.party.keys import load_identity
from silograph.party.log import Log
from silograph.party.roster import RosterFile, read_roster
from silograph.party.store import Frozen, Store
from silograph.party.trail import Trail

__all__ = ["Clock", "Party", "held", "locked", "open_store"]

#: Seconds since 1970, UTC.
Clock = Callable[[], float]


def open_store(config: PartyConfig) -> Store:
    """Open a party's state store; its folder is created if necessary."""
    try:
        config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{config.file}: state: {config.state}: {error.strerror}") from None
    return Store(config.store, config.name)


class Party:
    """A party with all files that its runs need, after checking that they belong together."""

    def __init__(self, config: PartyConfig, clock: Clock = time.time) -> None:
        self.config = config
        self.name = config.name
        self.clock = clock
        self.identity = load_identity(config.identity, config.passphrase())
        file = read_roster(config.roster)
        self.check_place(config, file, self.identity)
        self.roster = file.roster
        self._universe = config.nodes()
        self.store = open_store(config)
        self.store.verify()
        known = self.store.roster()
        if known is not None:
            file.check_replaces(*known)
        self.store.set_roster(file.serial, file.digest)
        self.log = Log(config.state / "log.jsonl", self.name)
        self.trail = Trail(self.store, clock)

    @staticmethod
    def check_place(config: PartyConfig, file: RosterFile, identity: Identity) -> None:
        """Refuse a roster that not all have signed, or in which the party has another place."""
        file.check_complete()
        name = config.name
        if file.place(identity.public) != name:
            raise RosterError(
                f"{config.roster}: the identity is that of {file.place(identity.public)}, "
                f"not of {name}"
            )
        roles: dict[str, str] = {member.name: role for role, member in file.parties}
        role = roles.get(name, "coordinator")
        if role != config.role:
            raise RosterError(
                f"{config.roster}: {name} is a {role}, and {config.file} is the file of a "
                f"{config.role}"
            )

    @property
    def universe(self) -> NodeUniverse:
        """The node list."""
        if self._universe is None:
            raise ConfigError(f"{self.config.file}: universe is missing")
        return self._universe

    @property
    def has_universe(self) -> bool:
        """Whether the party knows the node list; a helper may do without."""
        return self._universe is not None

    def end(
        self,
        run: str,
        state: str,
        code: str = "",
        last: Sequence[Frozen] = (),
        error: BaseException | None = None,
    ) -> None:
        """End a run in the store and the trail, in one transaction; ``last`` is yet to be sent."""
        name = bytes.fromhex(run)
        with self.store.together():
            self.store.end(run, state, code, last)
            for kind, messages, size in self.store.left(run):
                self.trail.left(name, kind, messages, size)
            self.trail.ended(name, f"{state}/{code}" if code else state, error)

    def close(self) -> None:
        """Close the store and the log."""
        self.store.close()
        self.log.close()


@contextmanager
def locked(path: Path, what: str, seconds: float = 0.0) -> Iterator[None]:
    """Hold a lock file inside the block; raises if another process holds it for ``seconds``."""
    limit = time.monotonic() + seconds
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    try:
        while not _lock(descriptor):
            if time.monotonic() >= limit:
                raise StoreError(f"{path}: {what}")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def held(path: Path) -> bool:
    """Whether a living process holds a lock file; the system takes it from one that was killed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
