"""The catalogue of all methods, and how a study is settled with its method."""

from silograph.errors import ArgumentError, ChannelError, StudyError
from silograph.estimators.reference import Reference
from silograph.estimators.release import Release
from silograph.methods.baseline.method import SettledBaseline
from silograph.methods.feat.method import SettledFeat
from silograph.methods.featplus.method import SettledFeatPlus
from silograph.methods.method import SettledStudy
from silograph.methods.sealed.method import SettledSealed
from silograph.methods.study import RELEASE, Study

__all__ = ["METHODS", "QUERIES", "plan_study", "settle_study"]

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
METHODS: dict[str, type[SettledStudy]] = {
    "feat": SettledFeat,
    "feat+": SettledFeatPlus,
    "sealed": SettledSealed,
    "baseline": SettledBaseline,
}


def plan_study(study: Study) -> SettledStudy:
    """Settle a study that was read: what it costs and how to carry it out.

    Every choice is written in the study. Raises :class:`StudyError` if it cannot be carried out.
    """
    method = _method(study)
    try:
        return method(study)
    except (ArgumentError, ChannelError) as error:
        raise StudyError(str(error)) from None


def settle_study(
    study: Study, like: Reference | None = None, owned: float | None = None
) -> SettledStudy:
    """Settle a study for its proposer, with every choice of its method written down.

    ``like`` is a reference that the graph may resemble. ``owned`` is the share of a node's edges
    that its main silo is expected to hold.
    """
    method = _method(study)
    try:
        return method(method.settled(study, like, owned))
    except (ArgumentError, ChannelError) as error:
        raise StudyError(str(error)) from None


def _method(study: Study) -> type[SettledStudy]:
    if study.method not in METHODS:
        raise StudyError(f"unknown method {study.method!r}; choose from {', '.join(METHODS)}")
    if study.query not in (*QUERIES, RELEASE):
        raise StudyError(f"unknown query {study.query!r}; choose from {', '.join(QUERIES)}")
    try:
        Release.check_leaves(study.query, study.k, study.nodes)
    except ArgumentError as error:
        raise StudyError(str(error)) from None
    return METHODS[study.method]
