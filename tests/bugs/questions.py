"""Bugs in further questions and in arithmetic of estimates: error bars that promise too much."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_GROUPS = "src/silograph/estimators/groups.py"
_COMPOSE = "src/silograph/estimators/compose.py"
_COVARIANCE = "src/silograph/estimators/covariance.py"

BUGS = [
    Bug(
        "groups: noise on noise counted twice",
        "the variance of assortativity and modularity is too large where noise prevails",
        _GROUPS,
        "        return first - second\n",
        "        return first + second\n",
        "pytest tests/estimators/test_groups.py -k quadratic",
    ),
    Bug(
        "groups: triples counted twice",
        "the variance of triangles between groups is wrong",
        _GROUPS,
        "return first - float(second + 2 * third)",
        "return first - float(second + third)",
        "pytest tests/estimators/test_groups.py -k triangles_by",
    ),
    Bug(
        "compose: all answers are independent",
        "errors of one release are added as if they were those of two",
        _COMPOSE,
        "    if not mine & theirs:\n",
        "    if mine or theirs:\n",
        "pytest tests/estimators/test_compose.py -k one_release or nobody",
    ),
    Bug(
        "compose: equal numbers are the same answer",
        "the difference of two subsets has no error if they have as many noisy edges",
        _COMPOSE,
        "    if _about(one) != _about(other) or not sources(one)",
        "    if one.name != other.name or not sources(one)",
        "pytest tests/estimators/test_compose.py -k equal_numbers",
    ),
    Bug(
        "compose: sums over pairs one by one",
        "the error of a small difference of large sums is lost in those of their variances",
        _COMPOSE,
        '        if hasattr(each.form, "lifted"):\n            joint',
        '        if hasattr(each.form, "raised"):\n            joint',
        "pytest tests/estimators/test_compose.py -k nearly_the_same",
    ),
    Bug(
        "compose: three triangles for one",
        "the covariance of triangles and 2-stars is three times too large",
        _COVARIANCE,
        "return (at[0] - at[1]) / 12",
        "return (at[0] - at[1]) / 4",
        "pytest tests/estimators/test_compose.py -k covariances",
    ),
    Bug(
        "compose: mended answers pass for the release's own",
        "errors of feat+ are taken for those of its release",
        "src/silograph/methods/featplus/answer.py",
        "        limits=None,\n        form=None,\n",
        "",
        "pytest tests/estimators/test_compose.py -k feat_plus",
    ),
]
