"""Bugs in what result pages and notebook displays say."""

from bugs.bug import Bug

__all__ = ["BUGS"]

_SRC = "src/silograph/"
_FACTS = "pytest tests/page/test_answer.py"
_PAGE = "pytest tests/page/test_result.py"
_BUDGET = "pytest tests/page/test_budget.py"
_DISPLAY = "pytest tests/estimators/test_display.py"

BUGS = [
    Bug(
        "pages: a loss looks smaller than it is",
        "what is printed is below what is certified",
        _SRC + "privacy/loss.py",
        "ROUND_FLOOR if left else ROUND_CEILING",
        "ROUND_FLOOR",
        _DISPLAY,
    ),
    Bug(
        "pages: names are markup",
        "who names a query or a view runs scripts in a notebook",
        _SRC + "queries/display.py",
        'f\'{escape(name)}</th><td style="{_CELL};text-align:left">{escape(value)}</td></tr>\'',
        'f\'{escape(name)}</th><td style="{_CELL};text-align:left">{value}</td></tr>\'',
        _DISPLAY,
    ),
    Bug(
        "pages: larger coalitions are passed over",
        "silence about three silos reads as a promise",
        _SRC + "report/observers.py",
        "return found + _beyond(origin)",
        "return found",
        _FACTS,
    ),
    Bug(
        "pages: everything is promised",
        "what nobody claims is shown as a promise",
        _SRC + "report/observers.py",
        "return Observer(who, view.epsilon, view.delta, view.claimed, learns)",
        "return Observer(who, view.epsilon, view.delta, True, learns)",
        _FACTS,
    ),
    Bug(
        "pages: a release of feat+ at the cost of its first part",
        "whoever had a part in the run saw degrees and reports as well",
        _SRC + "methods/featplus_plan.py",
        "self.views, worst_losses(self.losses),",
        "self.plan.union.views, self.plan.union.losses,",
        _FACTS,
    ),
    Bug(
        "pages: delta is free to repeat",
        "a page promises runs that the ledger will refuse",
        _SRC + "report/budget.py",
        "for have, each in ((left.epsilon, cost.epsilon), (left.delta, cost.delta))",
        "for have, each in ((left.epsilon, cost.epsilon),)",
        _BUDGET,
    ),
    Bug(
        "pages: the budget of another level",
        "what is left is counted against fewer silos than the limit is",
        _SRC + "report/budget.py",
        "loss_at(row.losses, level)[1]",
        "loss_at(row.losses, 0)[1]",
        _BUDGET,
    ),
    Bug(
        "pages: the printed protocol's error at the wrong epsilon",
        "the curve misses the run that it is about",
        _SRC + "report/error_curve.py",
        'epsilon / made.silos if made.protocol == "elgamal/printed" else epsilon',
        "epsilon",
        _FACTS,
    ),
    Bug(
        "pages: a saved page is half a page",
        "a full disk destroys the page that was there",
        _SRC + "report/result.py",
        "whole_files.replace(Path(path), content, ReportError, mode=_READABLE)",
        "Path(path).write_bytes(content)",
        _PAGE,
    ),
]  # fmt: skip
