"""Versions of every file that a deployment keeps, and one way to refuse those of other versions.

Two parties may run different releases of Silograph for a while, and files outlive programs. So
each file says what it is and of which version, a reader takes the versions that it knows and
refuses the rest in the same words, and nothing guesses. (Messages carry their version in the text
that is signed; a message of another version is refused like a forged one.)
"""

from dataclasses import dataclass

from silograph.errors import SilographError

__all__ = ["CONFIG", "IDENTITY", "JOURNAL", "LEDGER", "LEDGER_BACKUP", "ROSTER", "Format"]


@dataclass(frozen=True)
class Format:
    """A kind of file: what it is called, the version that is written, and all that are read.

    >>> Format("recipe", 3, reads=(2, 3)).check(4, "cake.txt", SilographError)
    Traceback (most recent call last):
      ...
    silograph.errors.SilographError: cake.txt: recipe of version 4; this Silograph reads versions \
2 and 3. It was written by a newer one: update Silograph here, or ask for a file of version 3
    """

    name: str
    current: int
    reads: tuple[int, ...] = ()

    def check(self, found: object, where: object, error: type[SilographError]) -> int:
        """The version, if it is one that can be read; otherwise raise ``error``."""
        known = self.reads or (self.current,)
        if isinstance(found, int) and not isinstance(found, bool) and found in known:
            return found
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise error(f"{where}: {self.name} without a version; it is foreign or damaged")
        plural = "s" if len(known) > 1 else ""
        reads = f"this Silograph reads version{plural} {' and '.join(map(str, known))}"
        advice = (
            "It was written by a newer one: update Silograph here, or ask for a file of version "
            f"{self.current}"
            if found > self.current
            else "It was written by an older one: use that one to bring it up to date"
        )
        raise error(f"{where}: {self.name} of version {found}; {reads}. {advice}")


IDENTITY = Format("identity file", 1)
ROSTER = Format("roster", 2)
#: Version 1 had no hash chain; it is brought to version 2 when it is opened.
LEDGER = Format("ledger", 2, reads=(1, 2))
LEDGER_BACKUP = Format("ledger backup", 2)
JOURNAL = Format("journal", 1)
CONFIG = Format("configuration", 1)
