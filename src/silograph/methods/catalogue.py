"""The catalogue: every query and method that a study can name, and a study's method.

A method is named here by the place of its class, which is imported when a study asks for it: a
command that only needs the names starts fast. To add a method, add its folder and one line here.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from silograph.errors import ArgumentError, ChannelError, StudyError
from silograph.methods.study import RELEASE, Study

if TYPE_CHECKING:
    from silograph.estimators.reference import Reference
    from silograph.methods.method import SettledStudy

__all__ = ["ANSWERING", "GROUPED", "METHODS", "QUERIES", "TRUST", "plan_study", "settle_study"]

QUERIES = (
    "edges",
    "degrees",
    "degree_histogram",
    "kstars",
    "triangles",
    "node_triangles",
    "four_cycles",
    "clustering",
)
#: Queries by a public partition of the nodes, which the study names; the committee counts them.
#: Of a release they are free.
GROUPED = ("mixing",)
#: Every method: the module and the class that settles its studies.
METHODS = {
    "feat": ("silograph.methods.feat.method", "SettledFeat"),
    "feat+": ("silograph.methods.featplus.method", "SettledFeatPlus"),
    "sealed": ("silograph.methods.sealed.method", "SettledSealed"),
    "baseline": ("silograph.methods.baseline.method", "SettledBaseline"),
    "hubs": ("silograph.methods.hubs.method", "SettledHubs"),
}
#: The methods that answer queries; a hub search names nodes instead.
ANSWERING = tuple(name for name in METHODS if name != "hubs")
#: What a user may be ready to assume, and what each word means.
TRUST = {
    "coordinator": "the coordinator follows the protocol",
    "silos": "the silos trust each other with their edges",
    "helpers": "parties without edges complete a committee of four",
}


def plan_study(study: Study) -> "SettledStudy":
    """What a study costs and how to carry it out, or a :class:`StudyError` that says why not.

    This is for those who read a study: every choice is already written in it.
    """
    return _settle(study, lambda method: method(study))


def settle_study(
    study: Study, like: "Reference | None" = None, owned: float | None = None
) -> "SettledStudy":
    """Like :func:`plan_study`, after writing down every choice that the method makes by itself.

    This is for whoever asks the question. ``like`` says what the graph may look like, and
    ``owned`` is the share of a node's edges that its main silo may hold.
    """
    return _settle(study, lambda method: method(method.settled(study, like, owned)))


def _settle(
    study: Study, settle: Callable[["type[SettledStudy]"], "SettledStudy"]
) -> "SettledStudy":
    if study.method not in METHODS:
        raise StudyError(f"unknown method {study.method!r}; choose from {', '.join(METHODS)}")
    if study.query in GROUPED and study.method != "sealed":
        raise StudyError(
            f"{study.query} is counted by method sealed; any release answers it for free"
        )
    if study.query not in (*QUERIES, *GROUPED, RELEASE):
        raise StudyError(f"unknown query {study.query!r}; choose from {', '.join(QUERIES)}")
    module, name = METHODS[study.method]
    try:
        return settle(getattr(import_module(module), name))
    except (ArgumentError, ChannelError) as error:
        raise StudyError(str(error)) from None
