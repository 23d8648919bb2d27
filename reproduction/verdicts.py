"""What the paper claims, and whether it holds: each claim with its words, its rule and a verdict.

A claim is judged in every reading of the paper (:mod:`reproduction.draws`): on the rows of the
methods as printed, as meant and as mended (:mod:`reproduction.rules` has the rules as code). The
verdict says which readings meet it, so that a reader sees what each erratum costs. Where rows are
missing, the verdict says so.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from reproduction.labels import READINGS
from reproduction.printed_numbers import NUMBERS, reachable
from reproduction.rules import (
    TWICE,
    All,
    Outcome,
    Rule,
    beats,
    beats_somewhere,
    every,
    fastest,
    little_influence,
    moves,
    sealed_beats_feat,
    time_grows,
    time_ratio,
)

__all__ = ["CLAIMS", "Claim", "Verdict", "Word", "counted", "judge"]


class Word(Enum):
    """The verdicts."""

    HOLDS = "holds"
    SOME = "holds only"
    FAILS = "does not hold"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Claim:
    """A claim with its words and place in the paper, and the rule that decides.

    ``figure`` is where its data are on the page. ``forms`` are the forms it is judged in.
    ``printed`` is the number, where the claim is a number of the text.
    """

    anchor: str
    title: str
    quote: str
    place: str
    words: str
    rule: Rule
    figure: str
    forms: tuple[str, ...] = tuple(READINGS)
    printed: float | None = None


@dataclass(frozen=True)
class Verdict:
    """A claim, judged."""

    claim: Claim
    outcomes: dict[str, Outcome]

    @property
    def word(self) -> Word:
        held = [outcome.holds for outcome in self.outcomes.values()]
        if any(holds is None for holds in held):
            return Word.NOT_MEASURED
        if all(held):
            return Word.HOLDS
        return Word.SOME if any(held) else Word.FAILS

    @property
    def met(self) -> tuple[str, ...]:
        """The readings that meet the claim."""
        return tuple(form for form, outcome in self.outcomes.items() if outcome.holds)

    @property
    def text(self) -> str:
        """The verdict in words; a number is reachable or not, and if not, then why."""
        said = str(self.word.value)
        if self.word is Word.SOME:
            said += f" {_listed(self.met)}"
        if self.claim.printed is None or self.word is Word.NOT_MEASURED:
            return said
        if self.word is Word.FAILS:
            why = sorted({outcome.why for outcome in self.outcomes.values()})
            return why[0] if len(why) == 1 else "out of reach"
        return said.replace("holds", "reachable")

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain values."""
        return {
            "claim": self.claim.anchor,
            "title": self.claim.title,
            "quote": self.claim.quote,
            "place": self.claim.place,
            "rule": self.claim.words,
            "verdict": self.text,
            "met": list(self.met),
            "outcomes": {
                form: {"holds": outcome.holds, "says": outcome.says}
                for form, outcome in self.outcomes.items()
            },
        }


def _listed(forms: Sequence[str]) -> str:
    """
    >>> _listed(["printed", "meant"])
    'as printed and as meant'
    """
    return " and ".join(READINGS.get(form, form).lower() for form in forms)


def judge(found: All) -> list[Verdict]:
    """Every claim on these results."""
    return [
        Verdict(claim, {form: claim.rule(found, form) for form in claim.forms}) for claim in CLAIMS
    ]


#: Each verdict said of one and of several: of claims, and of numbers.
_COUNTED = {
    False: {
        Word.HOLDS: ("holds", "hold"),
        Word.SOME: ("holds only", "hold only"),
        Word.FAILS: ("does not hold", "do not hold"),
    },
    True: {
        Word.HOLDS: ("is reachable", "are reachable"),
        Word.SOME: ("is reachable only", "are reachable only"),
        Word.FAILS: ("is out of reach", "are out of reach"),
    },
}


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims and how many printed numbers have which verdict, in two sentences."""
    said = []
    for what, numbers in (("claims", False), ("numbers that the text gives", True)):
        own = [one for one in verdicts if (one.claim.printed is not None) is numbers]
        words = _COUNTED[numbers] | {Word.NOT_MEASURED: ("was not measured", "were not measured")}
        kinds = Counter((one.word, one.met if one.word is Word.SOME else ()) for one in own)
        order = list(Word)
        parts = [
            f"{count} {words[word][count != 1]} {_listed(met)}".rstrip()
            for (word, met), count in sorted(
                kinds.items(),
                key=lambda kind: (order.index(kind[0][0]), -len(kind[0][1]), kind[0][1]),
            )
        ]
        said.append(f"Of {len(own)} {what}, {', '.join(parts)}.")
    return " ".join(said)


_Q1, _Q2 = "§V, Utility-Privacy Trade-off (Q1)", "§V, Parameter Effects (Q2)"
_Q3 = "§V, Execution Time (Q3)"
_HIGHLIGHTS = "§V, Evaluation Highlights"
#: Algorithm 3 to the letter does the same work as meant, and was not timed.
_TIMED = ("meant", "mended")
_ALL_RHO = "in all cases, the MSE and MRE increase with an increase in ρ"

_PAPER: Sequence[Claim] = (
    Claim(
        "feat-at-least-one",
        "FEAT beats Baseline by at least one order",
        "FEAT outperforms Baseline by at least an order of 1.",
        _Q1,
        "Over all graphs, queries and ε, Baseline's MSE is at least 10 times FEAT's in the middle "
        "(median), and in no case less by more than three standard errors.",
        beats("epsilon", "feat", "baseline", 1.0),
        "epsilon-2-stars-mse",
    ),
    Claim(
        "feat-up-to-four",
        "FEAT beats Baseline by up to four orders",
        "FEAT reduces the error of Baseline by up to an order of 4.",
        _HIGHLIGHTS,
        "In some case, in MSE or in MRE (the paper does not say which), Baseline's error is more "
        "than 10^3.5 times FEAT's, by more than three standard errors.",
        beats_somewhere("epsilon", "feat", "baseline", 3.5),
        "epsilon-triangles-mse",
    ),
    Claim(
        "featplus-one-order",
        "FEAT+ beats FEAT by at least one order",
        "FEAT+ outperforms FEAT by at least an order of 1 (Figures 4 to 7).",
        _HIGHLIGHTS,
        "Over all graphs, queries and ε, FEAT's MSE is at least 10 times FEAT+'s in the middle, "
        "and in no case less by more than three standard errors. Of several variants of FEAT+ "
        "the one that serves the claim best is taken.",
        beats("epsilon", "feat+", "feat", 1.0),
        "epsilon-triangles-mse",
    ),
    Claim(
        "error-falls-with-epsilon",
        "The error falls with ε",
        "the utility loss of all methods decreases with an increase in ε",
        _Q1,
        "For each method, graph and query, a straight line is laid through the logarithms of the "
        "MSE. From ε = 1 to 6 the lines of all cases together fall by more than three standard "
        "errors, and none alone rises so. Of several variants of a method the one that serves the "
        "claim best is taken.",
        moves("epsilon", "epsilon", "mse", -1),
        "epsilon-2-stars-mse",
    ),
    Claim(
        "better-for-all-rho-sigma",
        "FEAT beats Baseline, and FEAT+ beats FEAT, for all ρ and σ",
        "FEAT and FEAT+ significantly outperform Baseline and FEAT, respectively, under various "
        "values of ρ and σ",
        _HIGHLIGHTS,
        "For ρ and for σ, over all cases: the better method's MSE is at most half of the other's "
        "in the middle, and in no case larger by more than three standard errors.",
        every(
            *(
                beats(experiment, better, worse, 0.0, middle=TWICE)
                for experiment in ("rho", "sigma")
                for better, worse in (("feat", "baseline"), ("feat+", "feat"))
            )
        ),
        "rho-mse",
    ),
    Claim(
        "mse-grows-with-rho",
        "The MSE grows with ρ",
        _ALL_RHO,
        _Q2,
        "For each method, graph and query, a straight line is laid through the logarithms of the "
        "MSE. From the smallest to the largest ρ the lines of all cases together rise by more than "
        "three standard errors, and none alone falls so. Of several variants of a method the one "
        "that serves the claim best is taken.",
        moves("rho", "rho", "mse", 1),
        "rho-mse",
    ),
    Claim(
        "mre-grows-with-rho",
        "The MRE grows with ρ",
        _ALL_RHO,
        _Q2,
        "As for the MSE.",
        moves("rho", "rho", "mre", 1),
        "rho-mre",
    ),
    Claim(
        "sigma-little",
        "σ has little influence",
        "the overlapping rate σ has little influence on the overall utility",
        _Q2,
        "No method's MSE moves by more than a factor of 2 along a straight line (in logarithms) "
        "from the smallest to the largest σ, unless three standard errors explain it.",
        little_influence("sigma", "sigma", TWICE),
        "sigma-mse",
    ),
    Claim(
        "feat-ten-times",
        "FEAT takes about 10 × Baseline's time",
        "the running time of FEAT is approximately 10× higher than that of Baseline",
        _Q3,
        "The middle of the ratios over all graphs and ρ is between 5 and 20.",
        time_ratio("feat", "baseline", 5, 20),
        "time",
        _TIMED,
    ),
    Claim(
        "featplus-half-more",
        "FEAT+ takes about 1.5 × FEAT's time",
        "FEAT+ takes more time than FEAT by about 50%",
        _Q3,
        "The middle of the ratios over all graphs and ρ is between 1.25 and 1.75.",
        time_ratio("feat+", "feat", 1.25, 1.75),
        "time",
        _TIMED,
    ),
    Claim(
        "time-grows-with-rho",
        "The running time grows with ρ",
        "the running time increases when the graph scale becomes larger",
        _Q3,
        "Every method on every graph takes at least 1.1 times as long at the largest ρ as at the "
        "smallest.",
        time_grows(1.1),
        "time",
        _TIMED,
    ),
    Claim(
        "libsodium",
        "Libsodium is the fastest of the ECC libraries",
        "Libsodium is more suitable for processing large-scale graph data",
        "§III-C, Table 2",
        "At the largest size that was measured in all three libraries, neither OpenSSL nor MCL "
        "takes less time an element than Libsodium by more than 2 % (their distance in the paper).",
        fastest("libsodium", ("openssl", "mcl"), 0.02),
        "curves",
        ("measured",),
    ),
)

_OURS: Sequence[Claim] = (
    Claim(
        "sealed-beats-feat",
        "sealed beats FEAT",
        "Exact counting on the hidden union, opened with noise, beats one noisy release.",
        "this project",
        "Over all graphs, queries and ε, the MSE of FEAT as mended is at least twice sealed's in "
        "the middle, and in no case smaller by more than three standard errors.",
        sealed_beats_feat("epsilon"),
        "sealed-distance",
        ("mended",),
    ),
)

_WITHIN = {
    "mse": "The printed number is between a tenth and ten times what is measured.",
    "mre": "The printed number is within a factor of √10 of what is measured.",
}

#: Every claim that is judged, in the order of the page.
CLAIMS: Sequence[Claim] = (
    *_PAPER,
    *(
        Claim(
            f"number-{position}",
            printed.name,
            printed.quote,
            printed.place,
            _WITHIN[printed.measure],
            reachable(printed),
            printed.figure,
            printed=printed.value,
        )
        for position, printed in enumerate(NUMBERS, 1)
    ),
    *_OURS,
)
