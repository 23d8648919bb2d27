"""The page of the reproduction."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction.figures import EXTRAS, all_figures, curve_lines
from reproduction.labels import graph_name, listed, seeds_of
from reproduction.results import EXPERIMENTS, Results
from reproduction.verdicts import Verdict, Word, counted, judge
from silograph.page.charts import Figure, draw, number, scripts
from silograph.page.html import Child, Markup, element, page, section, table

__all__ = ["TITLE", "Erratum", "errata", "reproduction_page"]


# --------------------------------------------------------------------------------------------------
# What does not hold in the paper, as data: with the tests that show it and the figures that do.


@dataclass(frozen=True)
class Erratum:
    """One point: where it stands, what is printed, what is wrong with it, what we do instead."""

    number: int
    where: str
    printed: str
    wrong: str
    instead: str
    tests: tuple[str, ...]
    figure: str = ""


def errata() -> list[Erratum]:
    """All of them, by number."""
    entries = tomllib.loads((Path(__file__).parent / "errata.toml").read_text())["erratum"]
    return [Erratum(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]


# --------------------------------------------------------------------------------------------------
# The page of the reproduction: verdicts first, then every figure, the errata, and how it was made.
#
# What was not run is said to be missing, in its place. Results of a quick run are marked as such at
# the top: they show that everything works, and nothing about the paper.

TITLE = "Federated graph analytics, reproduced"
_PAPER = "Federated Graph Analytics with Differential Privacy"
_BADGES = {
    Word.HOLDS: "good",
    Word.ONLY_MENDED: "half",
    Word.ONLY_PRINTED: "half",
    Word.FAILS: "bad",
    Word.NOT_MEASURED: None,
}
_FORMS = {"printed": "As printed", "mended": "As mended", "measured": "Measured"}
_CONTENTS = {
    "claims": "Verdicts",
    "privacy": "Error against ε",
    "splits": "ρ and σ",
    "running-time": "Running time",
    "libraries": "Elliptic curves",
    "beyond": "Beyond the paper",
    "errata": "Errata",
    "provenance": "How it was made",
}


def reproduction_page(found: Mapping[str, Results]) -> str:
    """The whole page, from the results of as many experiments as there are."""
    figures = all_figures(found)
    verdicts = judge(found)
    drawn = [figure for own in figures.values() for figure in own]
    anchors = {figure.anchor for figure in drawn}
    return page(
        TITLE,
        _quick(found),
        _verdicts(verdicts, anchors),
        section(
            "privacy",
            "Error against ε",
            element(
                "p",
                "How the methods compare when the privacy budget grows (the paper's Q1). The data "
                "say against how many colluding silos t the mended methods hold; the printed ones "
                "hold against none.",
            ),
            _experiment("epsilon", found, figures),
        ),
        section(
            "splits",
            "The split: ρ and σ",
            element(
                "p",
                "What each silo's share ρ of the graph and the overlap σ between silos change (Q2)."
                " Four silos together hold min(1, 4ρ/(1+σ)) of the edges, so the graph itself grows"
                " with ρ up to about 0.3.",
            ),
            _experiment("rho", found, figures),
            _experiment("sigma", found, figures),
        ),
        section(
            "running-time",
            "Running time",
            element("p", "What each method costs in time (Q3)."),
            _experiment("time", found, figures),
        ),
        section(
            "libraries",
            "Elliptic curves",
            _experiment("curves", found, figures),
            _curve_table(found.get("curves")),
        ),
        section(
            "beyond",
            "Beyond the paper",
            element("p", "Questions that the paper does not ask."),
            [_experiment(name, found, figures) for name in EXTRAS],
        ),
        _errata(anchors),
        _provenance(found),
        subtitle=[
            "Every figure and table in the evaluation of ",
            element("em", _PAPER),
            " (Liu et al.), run again: the methods as printed, the methods as mended, and what a "
            "trusted curator could do.",
        ],
        contents=_CONTENTS,
        scripts=scripts(drawn),
        footer=element(
            "p",
            "Made by ",
            element("code", "python -m reproduction report"),
            " from the results beside it.",
        ),
    )


def _quick(found: Mapping[str, Results]) -> Markup | None:
    quick = [name for name, results in found.items() if results.quick]
    if not quick:
        return None
    return element(
        "div",
        element("strong", "A quick run: this is not the reproduction. "),
        f"{', '.join(quick)}: few repetitions on a small graph, to see that everything works. The "
        "verdicts below say nothing about the paper. ",
        element("code", "python -m reproduction run --out DIR"),
        " makes the real thing.",
        class_="alarm",
        role="alert",
    )


def _badge(verdict: Verdict) -> Markup:
    kind = _BADGES[verdict.word]
    return element("span", verdict.text, class_=f"badge {kind}" if kind else "badge")


def _verdicts(verdicts: Sequence[Verdict], anchors: set[str]) -> Markup:
    claims: list[list[Child]] = [
        [_claim(one, anchors), _badge(one), _links(one.claim.figure, anchors)]
        for one in verdicts
        if one.claim.printed is None
    ]
    numbers: list[list[Child]] = [
        [
            _claim(one, anchors),
            number(one.claim.printed),
            *(number(one.outcomes[form].value) for form in ("printed", "mended")),
            _badge(one),
        ]
        for one in verdicts
        if one.claim.printed is not None
    ]
    return section(
        "claims",
        "Verdicts",
        element("p", counted(verdicts)),
        element(
            "p",
            "Each claim has a rule, the same in words here and in code; open a claim to read it "
            "with the numbers. It is applied to the methods as the paper prints them and to the "
            "methods as mended, and ",
            element("em", "holds"),
            " where both meet it. Errors are means of repetitions, so single cases are judged with "
            "three standard errors to spare.",
        ),
        table(
            ["Claim", "Verdict", "Evidence"],
            claims,
            caption="Claims of the paper, and one of ours",
            class_="claims",
            shown=False,
        ),
        element("h3", "The numbers of the text"),
        element(
            "p",
            "An MSE is reachable where it is between a tenth and ten times what is measured, an "
            "MRE within a factor of √10: ten repetitions pass that by chance once in 5,000 times.",
        ),
        table(
            ["Number", "In the paper", "As printed", "As mended", "Verdict"],
            numbers,
            caption="Numbers that the paper's text gives, beside what is measured",
            numeric=[1, 2, 3],
            class_="claims",
            shown=False,
        ),
    )


def _links(figure: str, anchors: set[str]) -> Child:
    if figure not in anchors:
        return element("span", "–", class_="quiet")
    return [
        element("a", "figure", href=f"#{figure}"),
        " · ",
        element("a", "data", href=f"#{figure}-data"),
    ]


def _claim(verdict: Verdict, anchors: set[str]) -> Markup:
    claim = verdict.claim
    outcomes = [
        (element("dt", _FORMS[form]), element("dd", _outcome(outcome.holds), f" {outcome.says}."))
        for form, outcome in verdict.outcomes.items()
    ]
    return element(
        "details",
        element("summary", claim.title),
        element("blockquote", f"“{claim.quote}”", element("br"), claim.place),
        element(
            "dl",
            element("dt", "Rule"),
            element("dd", claim.words),
            outcomes,
            element("dt", "Evidence"),
            element("dd", _links(claim.figure, anchors)),
        ),
        id=f"claim-{claim.anchor}",
        class_="claim",
    )


def _outcome(holds: bool | None) -> Markup:
    return element("strong", {True: "Met.", False: "Not met.", None: "Not measured."}[holds])


def _experiment(
    name: str, found: Mapping[str, Results], figures: Mapping[str, list[Figure]]
) -> Child:
    if name not in found:
        return element(
            "p",
            element("strong", f"{_title(name)}: not measured. "),
            "Run it with ",
            element("code", f"python -m reproduction run --figure {name}"),
            ".",
            class_="note",
            id=f"missing-{name}",
        )
    return [[draw(figure) for figure in figures.get(name, [])], _left_out(found[name])]


def _title(name: str) -> str:
    return EXTRAS[name][0] if name in EXTRAS else name.capitalize()


def _left_out(results: Results) -> Markup | None:
    if not results.left_out:
        return None
    keys = [key for key in results.left_out[0] if key != "experiment"]
    rows = [[number(row.get(key)) for key in keys] for row in results.left_out]
    return element(
        "details",
        element("summary", f"Left out of {results.experiment}: {len(rows)} combinations"),
        table(keys, rows, caption=f"Combinations left out of {results.experiment}", shown=False),
    )


def _curve_table(results: Results | None) -> Markup | None:
    if results is None or not results.rows:
        return None
    sizes, lines = curve_lines(results)
    return table(
        ["library", *(f"{size:,}" for size in sizes)],
        lines,
        caption="Seconds for so many elements. Those in brackets are scaled up from fewer.",
        numeric=range(1, 1 + len(sizes)),
    )


def _errata(anchors: set[str]) -> Markup:
    rows: list[list[Child]] = []
    for one in errata():
        evidence: list[Child] = [_path(path) for path in one.tests]
        if one.figure in anchors or one.figure == "provenance":
            evidence.append(element("a", "on this page", href=f"#{one.figure}"))
        texts = [_coded(text) for text in (one.where, one.printed, one.wrong, one.instead)]
        rows.append([str(one.number), *texts, evidence])
    return section(
        "errata",
        "Errata",
        element(
            "p",
            "What does not hold in the paper, and what is done instead. Beside each point stand "
            "the tests that it rests on and, where there are any, data on this page.",
        ),
        table(
            ["", "Where", "Printed", "What is wrong", "Instead", "Evidence"],
            rows,
            caption="Errata of the paper",
            class_="errata",
            shown=False,
        ),
    )


def _coded(text: str) -> list[Child]:
    """Text with what stands between backticks as code."""
    return [
        element("code", part) if index % 2 else part for index, part in enumerate(text.split("`"))
    ]


def _path(path: str) -> Markup:
    """A path that may be broken after a slash."""
    folder, _, name = path.rpartition("/")
    return element("div", element("code", f"{folder}/", element("wbr"), name))


def _provenance(found: Mapping[str, Results]) -> Markup:
    rows = [
        [name, "quick" if results.quick else "full", str(len(results.rows)), seeds_of(results)]
        for name, results in found.items()
    ]
    made: dict[str, list[str]] = {}
    for name, results in found.items():
        by = f"{listed(results.software)}; {listed(results.machine)}"
        made.setdefault(by, []).append(name)
    graphs = {name: graph for results in found.values() for name, graph in results.graphs.items()}
    missing = [name for name in EXPERIMENTS if name not in found]
    return section(
        "provenance",
        "How it was made",
        element(
            "p",
            "Errors are a function of the parameters, the seeds and the software: the same on "
            "every machine. Times were measured on the machine that is named.",
        ),
        table(
            ["Experiment", "Run", "Rows", "Seeds"],
            rows,
            caption="Runs",
            numeric=[2],
            shown=False,
        ),
        element(
            "dl",
            [
                (
                    element("dt", "All of it" if len(made) == 1 else ", ".join(names)),
                    element("dd", by),
                )
                for by, names in made.items()
            ],
        ),
        table(
            ["Graph", "Nodes", "Edges", "Source"],
            [
                [graph_name(name), *(number(graph.get(k)) for k in ("nodes", "edges", "source"))]
                for name, graph in sorted(graphs.items())
            ],
            caption="Graphs",
            numeric=[1, 2],
            shown=False,
        )
        if graphs
        else None,
        element("p", f"Not run: {', '.join(missing)}.") if missing else None,
        element(
            "pre",
            element(
                "code",
                "python -m reproduction run --out experiments\n"
                "python -m reproduction report experiments",
            ),
        ),
    )
