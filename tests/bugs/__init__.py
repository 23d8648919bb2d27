"""The bugs that ``planted.py`` plants; each mechanism has a file of its own."""

from tests.bugs import (
    commands,
    committee,
    console,
    decoders,
    deployment,
    enrolment,
    featplus,
    fold,
    hubs,
    integer_noise,
    metrics,
    operations,
    questions,
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
    *enrolment.BUGS,
    *decoders.BUGS,
    *metrics.BUGS,
    *timing.BUGS,
    *questions.BUGS,
    *commands.BUGS,
    *console.BUGS,
]
