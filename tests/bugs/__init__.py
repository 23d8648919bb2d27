"""The bugs that ``planted.py`` plants; each mechanism has a file of its own."""

from tests.bugs import (
    commands,
    committee,
    console,
    decoders,
    deployment,
    featplus,
    fold,
    hubs,
    integer_noise,
    metrics,
    operations,
    sealed,
    timing,
    unions,
)
from tests.bugs.bug import Bug

__all__ = ["BUGS", "Bug"]

BUGS = [
    *unions.BUGS,
    *integer_noise.BUGS,
    *featplus.BUGS,
    *hubs.BUGS,
    *fold.BUGS,
    *committee.BUGS,
    *sealed.BUGS,
    *operations.BUGS,
    *deployment.BUGS,
    *decoders.BUGS,
    *metrics.BUGS,
    *timing.BUGS,
    *commands.BUGS,
    *console.BUGS,
]
