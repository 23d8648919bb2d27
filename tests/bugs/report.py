"""Bugs in the pages and in what they say of the paper."""

from bugs.bug import Bug

__all__ = ["BUGS"]

_REPORT = "src/silograph/report/"
_VERDICTS = "pytest tests/reproduction/test_verdicts.py"
_NUMBERS = "pytest tests/reproduction/test_printed_numbers.py"
_HTML = "pytest tests/page/test_html.py"
_PAGE = "pytest tests/reproduction/test_page.py"
_BROWSER = "pytest tests/browser/test_report.py"

BUGS = [
    Bug(
        "report: a text is markup",
        "a name in the results runs as a script in the reader's browser",
        _REPORT + "html.py",
        'escape(child, quote=False))',
        'child)',
        _HTML,
    ),
    Bug(
        "report: data end their script",
        "a text in the data ends its element, and what follows is markup",
        _REPORT + "html.py",
        'for character in "<>&\\u2028\\u2029":',
        'for character in "&\\u2028\\u2029":',
        _HTML,
    ),
    Bug(
        "report: a claim about all cases is met by a few",
        "a reading that exists for 2-stars alone speaks for triangles too",
        _REPORT + "rules.py",
        "{reading: plain | rows for reading, rows in found.items()}",
        "found",
        _VERDICTS,
    ),
    Bug(
        "report: one bad case is forgotten",
        "a claim about all cases is judged by the middle alone",
        _REPORT + "rules.py",
        "return Outcome(not failing and enough, says)",
        "return Outcome(enough, says)",
        _VERDICTS,
    ),
    Bug(
        "report: the middle is forgotten",
        "what falls short everywhere by a little passes as chance",
        _REPORT + "rules.py",
        "return Outcome(not failing and enough, says)",
        "return Outcome(not failing, says)",
        _VERDICTS,
    ),
    Bug(
        "report: what is missing holds",
        "an experiment that was not run is a claim that does not hold",
        _REPORT + "verdicts.py",
        "if any(holds is None for holds in held.values()):",
        "if all(holds is None for holds in ()) and not held:",
        _VERDICTS,
    ),
    Bug(
        "report: mended counts as printed",
        "a claim that stands only after mending is said to hold",
        _REPORT + "verdicts.py",
        "if all(held.values()):",
        "if any(held.values()):",
        _VERDICTS,
    ),
    Bug(
        "report: standard errors of single runs",
        "the spread of one run is taken for the error of a mean",
        _REPORT + "measured.py",
        "relative / math.sqrt(repetitions) / math.log(10)",
        "relative / math.log(10)",
        "pytest tests/reproduction/test_measured.py",
    ),
    Bug(
        "report: a floor of pairs",
        "the noise floor is that of fewer stars than there are",
        _REPORT + "printed_numbers.py",
        "return 3 * triples * v**2 if",
        "return triples * v**2 if",
        _NUMBERS,
    ),
    Bug(
        "report: any number is reachable",
        "a printed number far below the noise is within reach",
        _REPORT + "printed_numbers.py",
        "return Outcome(1 / slack <= factor <= slack, says, measured, why)",
        "return Outcome(factor <= slack, says, measured, why)",
        _NUMBERS,
    ),
    Bug(
        "report: a quick run passes for the real one",
        "three repetitions on a small graph are read as the reproduction",
        _REPORT + "reproduction.py",
        "quick = [name for name, results in found.items() if results.quick]",
        "quick = [name for name, results in found.items() if not results]",
        _PAGE,
    ),
    Bug(
        "report: zeros fall off the axis",
        "a value of zero has no place on a logarithmic axis",
        _REPORT + "curves.py",
        '"y": max(point.value, floor),',
        '"y": point.value,',
        _PAGE,
    ),
    Bug(
        "report: dark stays dark",
        "the button says that it changes the colours, and does not",
        _REPORT + "assets/page.js",
        'root.dataset.theme = dark() ? "light" : "dark";',
        'root.dataset.theme = dark() ? "dark" : "dark";',
        _BROWSER,
    ),
    Bug(
        "report: pictures with names for colours",
        "a saved picture is black in every other program",
        _REPORT + "assets/charts.js",
        "colours.getPropertyValue(name).trim(),",
        "`var(${name})`,",
        _BROWSER,
    ),
    Bug(
        "report: the page may call home",
        "a page that opens offline can send what it shows",
        _REPORT + "html.py",
        "\"default-src 'none'; style-src",
        "\"connect-src *; style-src",
        _BROWSER,
    ),
]  # fmt: skip
