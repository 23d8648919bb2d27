"""Bugs in integer noise: its samplers, its laws, and what the sealed answers cost and say."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_LAW = "src/silograph/dp/laplace.py"
_NOISE = "src/silograph/methods/sealed/noise.py"
_STARS = "src/silograph/methods/sealed/answer.py"
_ANSWERS = "src/silograph/methods/sealed/answer.py"

_LAWS = "pytest tests/dp/test_laplace.py"
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
        'return self.sensitivity(answer, bound) * (2 if answer == "degrees" else 1)',
        "return self.sensitivity(answer, bound)",
        _COSTS + " -k TestSensitivity",
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
        'return most if answer == "triangles" else 2 * most',
        "return most",
        _COSTS + " -k TestSensitivity",
    ),
    Bug(
        "sealed noise: shares for m instead of h",
        "noise chosen as if colluding silos kept theirs secret",
        _NOISE,
        'return self.silos - self.collusion if self.kind == "shared" else 1',
        'return self.silos if self.kind == "shared" else 1',
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: one loss for all levels",
        "colluding silos are booked as if they did not",
        _NOISE,
        "return {t: self.epsilon(self.silos - t) for t in range(self.silos)}",
        "return {t: self.epsilon(self.silos) for t in range(self.silos)}",
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: loss at half the rate",
        "with delta, where few are honest, counts cost more than is booked",
        _NOISE,
        "law = NoiseLaw(self._total(answer, None) / budget, self.shares, self.silos)",
        "law = NoiseLaw(2 * self._total(answer, None) / budget, self.shares, self.silos)",
        _COSTS + " -k every_bound",
    ),
    Bug(
        "sealed noise: slack one too small",
        "the bound fails more often than delta",
        _NOISE,
        "return law.least_reach(math.nextafter(math.sqrt(delta), 0))",
        "return max(law.least_reach(math.nextafter(math.sqrt(delta), 0)) - 1, 0)",
        _COSTS + " -k TestDelta",
    ),
    Bug(
        "sealed noise: slack for one noise, not for two",
        "2-stars: half of the slack that the sum of two noises needs",
        _NOISE,
        "return -(-law.summed(2).least_reach(delta) // 2)",
        "return -(-law.least_reach(delta) // 2)",
        _COSTS + " -k TestSlack",
    ),
    Bug(
        "sealed noise: slack of the honest part alone",
        "the total noise is wider than that of h silos",
        _NOISE,
        '        law = self.law("degrees")\n',
        '        law = NoiseLaw(self.scale("degrees"), 1, 1)\n',
        _COSTS + " -k TestSlack",
    ),
    Bug(
        "sealed noise: bound without slack",
        "the largest noisy degree bounds the sensitivity",
        _NOISE,
        "int(degrees.max()) + self.slacks[answer], 1)",
        "int(degrees.max()), 1)",
        _COSTS + " -k TestChoice",
    ),
    Bug(
        "sealed noise: a view that is not held",
        "the coordinator with one silo sees every edge, and is said not to",
        _NOISE,
        'View("coordinator + 1 silo", math.inf, claimed=False)',
        'View("coordinator + 1 silo", silos, self.delta)',
        _COSTS + " -k views",
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
        "sealed answers: intervals of one silo's noise",
        "the noise of the others is not counted",
        _NOISE,
        "return NoiseLaw(self.scale(answer, bound), self.shares, self.silos)",
        "return NoiseLaw(self.scale(answer, bound), self.shares, self.shares)",
        _COVER,
    ),
    Bug(
        "sealed answers: one seed for all silos",
        "their noises are equal and do not average out",
        _ANSWERS,
        'seed_bytes(f"sealed/{answer}/{silo}", seed)',
        'seed_bytes(f"sealed/{answer}", seed)',
        _COVER,
    ),
]

BUGS = [*_SAMPLERS, *_CERTIFICATES, *_QUERIES]
