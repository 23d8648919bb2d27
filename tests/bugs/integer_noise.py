"""Bugs in integer noise: its samplers, its laws, and what the sealed answers cost and say."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_LAW = "src/silograph/dp/laplace.py"
_NOISE = "src/silograph/methods/sealed/noise.py"
_STARS = "src/silograph/methods/sealed/stars.py"
_ANSWERS = "src/silograph/methods/sealed/answer.py"
_DIGITS = "src/silograph/dp/digits.py"

_LAWS = "pytest tests/dp/test_laplace.py"
_TOSSED = "pytest tests/dp/test_digits.py"
_COSTS = "pytest tests/methods/sealed/test_noise.py"
_DRAWS = "pytest tests/dp/test_laplace_draws.py"
_EXACT = "pytest tests/methods/sealed/test_answer.py -k TestExact"
_COVER = "pytest tests/methods/sealed/test_answer.py -k TestIntervals"

_SAMPLERS = [
    Bug(
        "integer noise: words not drawn again",
        "some integers below a bound come more often than others",
        "crates/core/src/dp/coins.rs",
        "if low >= bound || low >= bound.wrapping_neg() % bound {",
        "if low >= bound || low < bound {",
        "cargo equally_many_words",
    ),
    Bug(
        "integer noise: series of e^−γ without its factorials",
        "a coin of 1/(1+γ) instead",
        "crates/core/src/dp/coins.rs",
        "while draws.toss(rest, den) && draws.toss(1, k) {",
        "while draws.toss(rest, den) {",
        "cargo coins_of_e",
    ),
    Bug(
        "integer noise: minus zero kept",
        "zero comes twice as often as it should",
        "crates/core/src/dp/laplace.rs",
        "(true, 0) => None,",
        "(true, 0) => Some(0),",
        _DRAWS + " -k discrete_laplace",
    ),
    Bug(
        "integer noise: one sign only",
        "the noise is never negative",
        "crates/core/src/dp/laplace.rs",
        "(true, k) => Some(-k),",
        "(true, k) => Some(k),",
        "cargo discrete_laplace_law",
    ),
    Bug(
        "integer noise: scale without its denominator",
        "noise of another scale than was certified",
        "crates/core/src/dp/laplace.rs",
        "i64::try_from(x / u128::from(scale.den)).ok()",
        "i64::try_from(x / u128::from(scale.den.min(1))).ok()",
        "cargo geometric_law",
    ),
    Bug(
        "integer noise: twice as many points",
        "shares of twice the shape",
        "crates/core/src/dp/polya.rs",
        "if !draws.toss(2, h * u64::from(n)) {",
        "if !draws.toss(4, h * u64::from(n)) {",
        "cargo poisson_law",
    ),
    Bug(
        "integer noise: points of a block not thinned",
        "too many large points",
        "crates/core/src/dp/polya.rs",
        "(draws.toss(1 << j, l) && scale.decay(draws, l, whole))",
        "scale.decay(draws, l, whole)",
        _DRAWS + " -k shares",
    ),
    Bug(
        "integer noise: tail too light",
        "points past the scale come too seldom",
        "crates/core/src/dp/polya.rs",
        "(0..levels).all(|_| draws.two_over_e())",
        "(0..levels).all(|_| draws.one_over_e())",
        _DRAWS + " -k shares",
    ),
]

_CERTIFICATES = [
    Bug(
        "integer noise: scale rounded down",
        "the largest scale that costs more than epsilon",
        _LAW,
        "    return Fraction(c, d)\n",
        "    return Fraction(c, d) if c == wanted * d else Fraction(a, b)\n",
        _LAWS + " -k TestScale",
    ),
    Bug(
        "integer noise: few honest shares cost as much as all",
        "what colluders know of the noise is not counted",
        _LAW,
        "if honest >= self.shares:",
        "if honest >= 1:",
        _LAWS + " -k TestLoss",
    ),
    Bug(
        "integer noise: tail without what is cut off",
        "one end of the sum is left out, and the bound is none",
        _LAW,
        "table.above[x : x + reach]",
        "table.above[x + 1 : x + 1 + reach]",
        _LAWS + " -k TestTail",
    ),
    Bug(
        "sealed noise: one end of an edge",
        "degrees get noise for a sensitivity of 1",
        _NOISE,
        'budget = self.budgets[answer] / (2 if answer == "degrees" else 1)',
        "budget = self.budgets[answer]",
        _COSTS + " -k TestSensitivity or TestChoice",
    ),
    Bug(
        "sealed noise: loss of one end",
        "the certificate counts one of the two degrees that change",
        _NOISE,
        'return one * (2 if answer == "degrees" else 1)',
        "return one",
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: 2-stars of one end",
        "half of the sensitivity",
        _NOISE,
        'return (self.nodes - 2) * (2 if answer == "two_stars" else 1)',
        "return self.nodes - 2",
        _COSTS + " -k TestSensitivity",
    ),
    Bug(
        "sealed noise: parts for four instead of three",
        "noise chosen as if a dishonest member kept its part secret",
        _NOISE,
        "HONEST = 3",
        "HONEST = 4",
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: two members that see nothing",
        "members that pool are booked as if they did not",
        _NOISE,
        "if together > (0 if self.inside else 1):",
        "if together > (0 if self.inside else 2):",
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: a coordinator inside with a member",
        "the coordinator is one of the four, and is said to learn nothing with a second one",
        _NOISE,
        "if together > (0 if self.inside else 1):",
        "if together > 1:",
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: margin one too small",
        "the bound fails more often than delta",
        _NOISE,
        "return law.least_reach(math.nextafter(math.sqrt(delta), 0))",
        "return max(law.least_reach(math.nextafter(math.sqrt(delta), 0)) - 1, 0)",
        _COSTS + " -k TestBounds",
    ),
    Bug(
        "sealed noise: the margin of one end for the second-largest",
        "either end may fail, and one alone is counted",
        _NOISE,
        "return law.least_reach(delta / 2)",
        "return law.least_reach(delta)",
        _COSTS + " -k TestBounds",
    ),
    Bug(
        "sealed noise: margin for one noise, not for two",
        "2-stars: less than the sum of two noises needs",
        _NOISE,
        "return law.least_reach(delta, summed=2)",
        "return law.least_reach(delta)",
        _COSTS + " -k TestBounds",
    ),
    Bug(
        "sealed noise: all of delta for the bounds",
        "nothing of it is left for the noise itself",
        _NOISE,
        "each = (Fraction(delta) - _noise_delta(noise)) / len(counts)",
        "each = Fraction(delta)",
        _COSTS + " -k TestChoice or TestBounds",
    ),
    Bug(
        "sealed noise: bound without margin",
        "the largest noisy degree bounds the sensitivity",
        _NOISE,
        "return max(1, min(cap, found + margin))",
        "return max(1, min(cap, found))",
        _COSTS + " -k TestBounds",
    ),
    Bug(
        "sealed noise: 2-stars bounded by the second-largest",
        "an edge at the centre of a star changes them by far more",
        _NOISE,
        '"sum": largest + second}',
        '"sum": 2 * second}',
        _COSTS + " -k TestBounds",
    ),
    Bug(
        "sealed noise: a bound with noise in shares",
        "a member lowers the bound with its own part",
        _NOISE,
        '    if rule and kind == "shares":\n        raise ArgumentError(_NO_BOUND)\n',
        "",
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: a view that is not held",
        "two members that pool see every edge, and are said not to",
        _NOISE,
        'View("2 members", math.inf, claimed=False)',
        'View("2 members", loss, self.delta)',
        _COSTS + " -k views",
    ),
    Bug(
        "digits: a law with a digit too few",
        "the largest noise is too small, and delta too large",
        _DIGITS,
        "return (1 << len(self.numerators)) - 1",
        "return (2 << len(self.numerators)) - 1",
        _TOSSED,
    ),
    Bug(
        "digits: rounding that is not counted",
        "coins of few places cost more than is certified",
        _DIGITS,
        "return shift / self.scale + self.rounding",
        "return shift / self.scale",
        _TOSSED,
    ),
    Bug(
        "digits: the tail without the change",
        "delta is that of noise that is not moved",
        _DIGITS,
        "return _up(self._above(self.reach + 1 - shift), ",
        "return _up(self._above(self.reach), ",
        _TOSSED,
    ),
]

_QUERIES = [
    Bug(
        "sealed answers: bias doubled",
        "the correction for the noise has the wrong sign",
        _STARS,
        "found.append(-found[-1] * spread * (kappa - j) / (j + 1))",
        "found.append(found[-1] * spread * (kappa - j) / (j + 1))",
        _EXACT,
    ),
    Bug(
        "sealed answers: variance without its second part",
        "the square of the truth is estimated by the square of the estimate",
        _STARS,
        "return math.factorial(k + j) // (math.factorial(k - j) * math.factorial(j) ** 2)",
        "return math.factorial(k + j) // (math.factorial(k - j) * math.factorial(j))",
        _EXACT,
    ),
    Bug(
        "sealed answers: intervals of three parts",
        "the noise of the fourth member is not counted",
        _NOISE,
        'parts = (1, 1) if self.kind == "committee" else (HONEST, PARTS)',
        'parts = (1, 1) if self.kind == "committee" else (HONEST, HONEST)',
        _COVER,
    ),
    Bug(
        "sealed answers: one seed for all members",
        "their parts are equal and do not average out",
        _ANSWERS,
        'seed_bytes(f"sealed/{answer}/{member}", seed)',
        'seed_bytes(f"sealed/{answer}", seed)',
        _COVER,
    ),
]

BUGS = [*_SAMPLERS, *_CERTIFICATES, *_QUERIES]
