"""Bugs in feat+: noise, joint sensitivity, owners, local answers, numbers, what is shown."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_NOISE = "src/silograph/methods/featplus/noise.py"
_OWNERS = "src/silograph/methods/featplus/answer.py"
_LOCAL = "src/silograph/methods/featplus/answer.py"
_GRADIENT = "src/silograph/estimators/gradient.py"
_NUMBERS = "src/silograph/methods/featplus/noisy_vectors.py"
_BROADCAST = "src/silograph/methods/featplus/shared_view.py"
_METHOD = "src/silograph/methods/featplus/answer.py"
_KERNEL = "crates/core/src/graph/local.rs"

_COSTS = "pytest tests/methods/featplus/test_noise.py"
_PAPER = "pytest tests/methods/featplus/test_local.py -k kstars-2 or triangles-None"
_GRADIENTS = "pytest tests/methods/featplus/test_gradient.py"
_WHOLE = "pytest tests/methods/featplus/test_method.py"
_SENT = "pytest tests/methods/featplus/test_noisy_vectors.py"
_SHOWN = "pytest tests/methods/featplus/test_shared_view.py"
_RUN = "pytest tests/methods/featplus/test_federation.py -k TestLedger or TestCount"

_CERTIFICATES = [
    Bug(
        "feat+: degrees at scale m/ε2",
        "the paper's own scale: an edge has two ends, and costs twice ε2",
        _NOISE,
        "(1 if self.printed else 2) * self.silos",
        "self.silos",
        _COSTS,
    ),
    Bug(
        "feat+: one end of an edge counted",
        "the certificate forgets the second degree that an edge changes",
        _NOISE,
        "return 2 * honest / self.partition_scale",
        "return honest / self.partition_scale",
        _COSTS,
    ),
    Bug(
        "feat+: colluders for honest silos",
        "the degrees of t silos are certified instead of those of the other m − t",
        _NOISE,
        "self.partition_loss(self.silos - t)",
        "self.partition_loss(t)",
        _COSTS,
    ),
    Bug(
        "feat+: local answers not charged",
        "the losses in the ledger leave out ε3",
        _NOISE,
        "self.partition_loss(self.silos - t) + self.local_loss",
        "self.partition_loss(self.silos - t)",
        _COSTS,
    ),
    Bug(
        "feat+: rounding not paid for",
        "rounding a report can add a unit to its change, in every silo",
        _NOISE,
        'return STEPS if self.local == "gradient" else STEPS + self.silos',
        "return STEPS",
        _COSTS,
    ),
    Bug(
        "feat+: largest weight forgotten",
        "the other two pairs of a triangle weigh up to ω each",
        _NOISE,
        "return largest_change(channel) * omega**2 * (n - 2)",
        "return largest_change(channel) * (n - 2)",
        _PAPER,
    ),
    Bug(
        "feat+: stars at one end",
        "an edge lies in the stars of both its ends",
        _NOISE,
        "return 2 * largest_change(channel) * stars",
        "return largest_change(channel) * stars",
        _PAPER,
    ),
    Bug(
        "feat+: change of ones alone",
        "a noisy zero moves by more than a noisy one when its holder knows better",
        _NOISE,
        "return max(abs(1 - channel.alpha), abs(1 - channel.beta))",
        "return abs(1 - channel.alpha)",
        _GRADIENTS + " -k sensitivity or mean_zero",
    ),
    Bug(
        "feat+: all of epsilon for the release",
        "ε2 and ε3 come on top",
        "src/silograph/methods/featplus/method.py",
        "settle_union(protocol, shares.release_epsilon, silos",
        "settle_union(protocol, epsilon, silos",
        _WHOLE + " -k TestPlan",
    ),
    Bug(
        "feat+: t = 0 with a release that silos see",
        "a single silo with the release has a larger loss than epsilon",
        "src/silograph/methods/featplus/method.py",
        "(collusion == 0 or protocol in _OPEN_TO_SILOS)",
        "protocol in _OPEN_TO_SILOS",
        _WHOLE + " -k TestPlan",
    ),
    Bug(
        "feat+: the ledger gets ε1",
        "only the release is spent",
        "src/silograph/methods/featplus/method.py",
        "self.losses, self.views, self.advice = self.plan.losses,",
        "self.losses, self.views, self.advice = self.plan.union.losses,",
        _RUN,
    ),
]

_ANSWERS = [
    Bug(
        "feat+: bound from the release",
        "κ looks at every y_e: the answer is biased",
        _METHOD,
        "bound = default_bound(plan.query, degrees, scale, channel, plan.n, plan.k)",
        "bound = float(np.median(graph.degrees)) + 1.0 + float(scale) * float(channel.g)",
        _WHOLE + " -k TestShared",
    ),
    Bug(
        "feat+: both owners of a pair",
        "a pair is reported by the owners of both its ends: twice the sensitivity",
        _OWNERS,
        "pairs[owners[pairs[:, 0]] == place]",
        "pairs[(owners[pairs] == place).any(axis=1)]",
        _GRADIENTS + " -k sensitivity",
    ),
    Bug(
        "feat+: nodes with two owners",
        "a node counts for its owner and for every silo before it",
        _OWNERS,
        "np.flatnonzero(owners == place)",
        "np.flatnonzero(owners >= place)",
        _WHOLE + " -k neighbouring or unbiased",
    ),
    Bug(
        "feat+: ties to the last",
        "of equal degrees the last silo wins, which is not what all agreed on",
        _OWNERS,
        "table.argmax(axis=0)",
        "(len(table) - 1 - table[::-1].argmax(axis=0))",
        _GRADIENTS + " -k TestOwners",
    ),
    Bug(
        "feat+: own edges weigh α",
        "what the owner knows for certain is weighed as if it were noisy",
        _LOCAL,
        "triples[h][y] * a**y *",
        "triples[h][y] * a ** (h + y) *",
        _PAPER,
    ),
    Bug(
        "feat+: own edges noisy as well",
        "a held pair counts once as an own edge and once more where the release shows it",
        _LOCAL,
        "return held.degrees, noisy.degrees - shared",
        "return held.degrees, noisy.degrees",
        _PAPER,
    ),
    Bug(
        "feat+: nodes before the owned one",
        "triples are counted whose smallest node is not the owned one",
        _KERNEL,
        "        words[whole] &= u64::MAX << (cut % 64);\n",
        "",
        "cargo local",
    ),
    Bug(
        "feat+: held pairs taken for noisy ones",
        "the third pair of a triple, where it is held, is weighed by the release",
        _KERNEL,
        "found[h + 1][y] += edges[0][i];",
        "found[h][y + 1] += edges[0][i];",
        "cargo local",
    ),
    Bug(
        "feat+: no clipping",
        "a term may be as large as it likes",
        "src/silograph/methods/featplus/answer.py",
        "np.clip(gradient(query, noisy, channel, pairs, k, scale=bound), -1.0, 1.0)",
        "gradient(query, noisy, channel, pairs, k, scale=bound)",
        _GRADIENTS + " -k sensitivity or mean_zero",
    ),
    Bug(
        "feat+: rounded before it is clipped",
        "the gradient is rounded to whole bounds: a term is off by half of Δ",
        "src/silograph/methods/featplus/answer.py",
        "np.clip(gradient(query, noisy, channel, pairs, k, scale=bound), -1.0, 1.0)",
        "np.clip(np.rint(gradient(query, noisy, channel, pairs, k, scale=bound)), -1.0, 1.0)",
        _GRADIENTS + " -k mean_zero",
    ),
    Bug(
        "feat+: the wrong change",
        "a pair that the release shows is corrected like one that it does not, and the reverse",
        "src/silograph/methods/featplus/answer.py",
        "for a in (channel.beta, channel.alpha)])",
        "for a in (channel.alpha, channel.beta)])",
        _GRADIENTS + " -k mean_zero",
    ),
    Bug(
        "feat+: the pair in its own gradient",
        "a gradient that contains the pair's own bit does not average out",
        _GRADIENT,
        "- 2 * noisy.at(pairs)).astype(np.float64)",
        ").astype(np.float64)",
        _GRADIENTS + " -k mean_zero or own_bit",
    ),
    Bug(
        "feat+: Laplace noise left out of the error",
        "intervals as if the silos' answers were exact",
        _METHOD,
        "math.hypot(own.stderr, laplace)",
        "own.stderr",
        _WHOLE + " -k TestCombine",
    ),
]

_MESSAGES = [
    Bug(
        "numbers: no noise",
        "the exact numbers are sent",
        _NUMBERS,
        "noisy = [int(x) + z for x, z",
        "noisy = [int(x) for x, z",
        _SENT,
    ),
    Bug(
        "numbers: one noise for all",
        "every number of a vector gets the same noise, so that differences are exact",
        _NUMBERS,
        "zip(values, noise.tolist(), strict=True)",
        "zip(values, [noise.tolist()[0]] * len(values), strict=True)",
        _SENT,
    ),
    Bug(
        "numbers: noise that anyone can draw",
        "the noise does not depend on the silo's secret",
        _NUMBERS,
        'hmac.digest(self._secret, label, "sha256")',
        'hmac.digest(bytes(32), label, "sha256")',
        _SENT,
    ),
    Bug(
        "numbers: half of the scale",
        "half of the noise that was paid for",
        _NUMBERS,
        "parameters.scale.denominator,",
        "2 * parameters.scale.denominator,",
        _SENT,
    ),
    Bug(
        "numbers: a second vector",
        "two vectors under one noise: their difference is exact",
        _NUMBERS,
        'if self._sent not in (b"", seen):',
        "if len(self._sent) > 32:",
        _SENT,
    ),
    Bug(
        "numbers: sent before the ledger knows",
        "nothing asks whether the spend was recorded",
        _NUMBERS,
        'state = self._step("numbers")',
        "state = State.SENT",
        _SENT,
    ),
    Bug(
        "numbers: scale not agreed on",
        "a coordinator may tell each silo another scale",
        _NUMBERS,
        "values = (self.silos, self.length, self.scale, self.unit)",
        "values = (self.silos, self.length, self.unit)",
        _SENT,
    ),
    Bug(
        "broadcast: views not compared",
        "silos go on with different owner maps: two of them answer for one edge",
        _BROADCAST,
        "            if view != self._view:\n",
        "            if len(view) != len(self._view):\n",
        _SHOWN,
    ),
    Bug(
        "broadcast: the last chunk signed for",
        "the owners, in the first chunk, may differ",
        _BROADCAST,
        "for chunk in chunks:\n",
        "for chunk in chunks[-1:]:\n",
        _SHOWN,
    ),
    Bug(
        "broadcast: used before all have signed",
        "a silo answers to what it alone was shown",
        _BROADCAST,
        '''when all silos have signed for the same."""
        self._require(State.AGREED, "content")
''',
        '''when all silos have signed for the same."""
        self._step("seens") if self.state is State.SHOWN else None
''',
        _SHOWN,
    ),
    Bug(
        "feat+: reports about anything shown",
        "a report is not bound to the release and owners that it was made for",
        "src/silograph/methods/featplus/rounds.py",
        'scale, unit, shown, "reports")',
        'scale, unit, b"", "reports")',
        _WHOLE + " -k TestPlan",
    ),
    Bug(
        "feat+: owners out of range",
        "an owner that is no silo: a node that nobody answers for",
        "src/silograph/methods/featplus/rounds.py",
        "if int(owners.max()) >= m:",
        "if int(owners.max()) > m:",
        _WHOLE + " -k TestShared",
    ),
]

BUGS = [*_CERTIFICATES, *_ANSWERS, *_MESSAGES]
