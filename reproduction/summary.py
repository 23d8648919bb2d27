"""The reproduction in short, as Markdown: verdicts, main tables, and how to make it again.

``docs/reproduction.md`` is what this gives for ``experiments/``; a test compares them.
"""

from collections.abc import Iterable, Mapping, Sequence

from reproduction.curves import by, reading_along, series_of
from reproduction.figures import EXTRAS, curve_lines, panels_of, varying
from reproduction.labels import AXES, READINGS, graph_name, listed, method_name, seconds, seeds_of
from reproduction.results import EXPERIMENTS, Results
from reproduction.verdicts import Verdict, counted, judge
from silograph.page.charts import number

__all__ = ["markdown"]


def markdown(found: Mapping[str, Results]) -> str:
    """The whole text."""
    verdicts = judge(found)
    parts = [
        "# The paper, reproduced",
        _quick(found),
        "Every figure and table in the evaluation of *Federated Graph Analytics with Differential "
        "Privacy* (Liu et al.), run again. This page is made from the results in `experiments/`; "
        "`python -m reproduction report experiments` makes the whole report from them, with every "
        "figure, rule and number.",
        "There are three readings of the paper ([errata](errata.md)):",
        "- *as printed*: Algorithm 3 to the letter, an OR of the coins that all silos toss. The "
        "printed estimators are not calibrated for it.\n"
        "- *as meant*: its prose, one response on the union, with the printed estimators. "
        "(per-node: Algorithm 5 with one binomial a node; as printed it takes one of all nodes of "
        "a silo together.) Algorithm 1, the Baseline, is the same as printed.\n"
        "- *as mended*: what Silograph does. FEAT and FEAT+ use `masked` unions here; "
        "[`committee`](explanation/committee.md) has less noise.",
        "Beside them stand *sealed's mechanism in one trusted hand*, who holds the whole graph and "
        "adds the noise alone, and what a *trusted curator* can do who also looks at the whole "
        "graph: the best central mechanisms that are known, with δ = 1e-9 or (the ladder) without "
        "a δ, simulated in the clear.",
        "## Verdicts",
        f"{counted(verdicts)} Each claim is judged by a rule, in every reading; it *holds* "
        "where all meet it. From one reading to the next one sees what the errata between them "
        "cost.",
        _verdicts(verdicts),
        "## Mean relative error against ε",
        *_errors(found.get("epsilon")),
        "## Running time",
        "FEAT and FEAT+ are timed as meant and as mended: Algorithm 3 to the letter does the same "
        "work as meant. What [sealed](explanation/sealed.md) takes is said on its own page.",
        *_times(found.get("time")),
        "## Elliptic curves",
        *_curves(found.get("curves")),
        "## Beyond the paper",
        *_extras(found),
        "## How to make it again",
        _again(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _quick(found: Mapping[str, Results]) -> str:
    if not any(results.quick for results in found.values()):
        return ""
    return (
        "**A quick run: this is not the reproduction.** Its verdicts say nothing about the paper."
    )


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    rule = ["---" if index < left else "---:" for index in range(len(headers))]
    lines = [headers, rule, *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    rows = [
        [
            one.claim.title,
            f"**{one.text}**",
            " ".join(
                f"{READINGS.get(form, form.capitalize())}: {outcome.says}."
                for form, outcome in one.outcomes.items()
            ),
        ]
        for one in verdicts
    ]
    return _table(["claim", "verdict", "numbers"], rows, left=3)


def _errors(results: Results | None) -> list[str]:
    if results is None or not results.rows:
        return ["Not measured."]
    return _error_tables(results, "epsilon")


def _error_tables(results: Results, along: str) -> list[str]:
    rows = [row for row in results.rows if row[along] is not None]
    named = series_of(rows, along)
    parts = []
    for query, name, own in panels_of(rows, along):
        places = sorted({row[along] for row in own})
        lines = []
        for key, series in named.items():
            values = {
                row[along]: row["mre"]
                for row in own
                if (row["method"], row["form"], reading_along(row, along)) == key
            }
            if values:
                lines.append([series.name, *(number(values.get(x)) for x in places)])
        headers = ["method", *(f"{AXES[along]} = {x:g}" for x in places)]
        parts += [f"{query.capitalize()}, {name}:", _table(headers, lines)]
    return parts


def _times(results: Results | None) -> list[str]:
    if results is None or not results.rows:
        return ["Not measured."]
    parts = []
    for (query, graph), own in sorted(by(results.rows, "query", "graph").items(), key=str):
        places = sorted({row["rho"] for row in own})
        lines = []
        for (method, form, union), rows in by(own, "method", "form", "union").items():
            timed = {row["rho"]: row for row in rows}
            cells = [seconds(timed.get(x)) for x in places]
            lines.append([f"{method_name(method, form)} ({union})", *cells])
        of = f", {query}" if query else ""
        headers = ["method (union)", *(f"ρ = {x:g}" for x in places)]
        parts += [
            f"Seconds on {graph_name(graph)}{of}; those in brackets are scaled up from part of the "
            "pairs:",
            _table(headers, lines),
        ]
    return parts


def _curves(results: Results | None) -> list[str]:
    if results is None or not results.rows:
        return ["Not measured."]
    sizes, lines = curve_lines(results)
    headers = ["seconds", *(f"{size:,}" for size in sizes)]
    return [_table(headers, lines), "Those in brackets are scaled up from fewer elements."]


def _extras(found: Mapping[str, Results]) -> list[str]:
    parts = []
    for name, (title, caption) in EXTRAS.items():
        results = found.get(name)
        parts.append(f"### {title}")
        if results is None or not results.rows:
            parts.append("Not measured.")
            continue
        parts.append(f"{caption} Mean relative error:")
        parts += _error_tables(results, varying(results))
    return parts


def _again(found: Mapping[str, Results]) -> str:
    runs = [
        [
            name,
            "not run" if name not in found else "quick" if found[name].quick else "full",
            seeds_of(found[name]) if name in found else "–",
            listed(found[name].software) if name in found else "",
            listed(found[name].machine) if name in found else "",
        ]
        for name in EXPERIMENTS
    ]
    commands = (
        "```text\npython -m reproduction run --out experiments\n"
        "python -m reproduction report experiments --markdown docs/reproduction.md\n```"
    )
    return (
        commands + "\n\n" + _table(["experiment", "run", "seeds", "software", "machine"], runs, 5)
    )
