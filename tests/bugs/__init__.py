"""The bugs that ``planted.py`` plants; each mechanism has a file of its own."""

from bugs import deployment, operations, unions
from bugs.bug import Bug

__all__ = ["BUGS", "Bug"]

BUGS = [*unions.BUGS, *operations.BUGS, *deployment.BUGS]
