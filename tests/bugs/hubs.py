"""Bugs in hub searches: what they cost, what is summed, what is masked, what is listed."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_NOISE = "src/silograph/methods/hubs/noise.py"
_MACHINES = "src/silograph/methods/hubs/machines.py"
_METHOD = "src/silograph/methods/hubs/method.py"
_ANSWER = "src/silograph/methods/hubs/answer.py"
_MASKED = "src/silograph/methods/masked/machines.py"
_CORE = "crates/core/src/crypto/masked.rs"

_COSTS = "pytest tests/methods/hubs/test_noise.py"
_RUN = "pytest tests/methods/hubs/test_machines.py"
_WHOLE = "pytest tests/methods/hubs/test_method.py"

BUGS = [
    Bug(
        "hubs: one end of an edge",
        "noise for the degree of one node, where an edge changes two",
        _NOISE,
        "ENDS = 2\n",
        "ENDS = 1\n",
        _COSTS,
    ),
    Bug(
        "hubs: one holder of an edge",
        "noise for an edge that one silo holds, where all may",
        _NOISE,
        "scale_for(ENDS * silos, epsilon)",
        "scale_for(ENDS, epsilon)",
        _COSTS,
    ),
    Bug(
        "hubs: shares for m instead of h",
        "a whole noise only together with those who collude",
        _NOISE,
        "return self.silos - self.collusion",
        "return self.silos",
        _COSTS,
    ),
    Bug(
        "hubs: a loss for one holder",
        "a loss that is certified for an edge of one honest silo",
        _NOISE,
        "self.law.loss(honest, honest, ",
        "self.law.loss(honest, 1, ",
        _COSTS,
    ),
    Bug(
        "hubs: a loss with all noise",
        "a loss that counts on the shares of silos that collude",
        _NOISE,
        "self.law.loss(honest, honest, ",
        "self.law.loss(self.silos, honest, ",
        _COSTS,
    ),
    Bug(
        "hubs: no noise",
        "bare sums of degrees",
        _MACHINES,
        'np.frombuffer(bits, dtype="<i8") + noise',
        'np.frombuffer(bits, dtype="<i8") + 0 * noise',
        _RUN,
    ),
    Bug(
        "hubs: equal noise in all chunks",
        "differences of sums without noise",
        _MACHINES,
        'label = pack(b"silograph/hubs/noise/v1", str(number).encode())',
        'label = pack(b"silograph/hubs/noise/v1", b"0")',
        _RUN,
    ),
    Bug(
        "hubs: noise from no secret",
        "noise that everyone can draw again",
        _MACHINES,
        "self._noise_secret = entropy.bytes(32)",
        "self._noise_secret = bytes(32)",
        _RUN,
    ),
    Bug(
        "hubs: no masks",
        "every silo uploads its bare degrees with its share of the noise",
        _CORE,
        "for (key, add) in &keys {",
        "for (key, add) in keys.iter().take(0) {",
        "cargo masks_of_numbers",
    ),
    Bug(
        "hubs: masks that do not cancel",
        "all masks are added",
        _CORE,
        "false => sum.wrapping_sub(mask),",
        "false => sum.wrapping_add(mask),",
        "cargo masks_of_numbers_cancel",
    ),
    Bug(
        "hubs: one mask for all blocks",
        "differences of numbers in the same place of two blocks",
        _CORE,
        "key.stream(block as u64).words().fill(masks);",
        "key.stream(block as u64 * 0).words().fill(masks);",
        "cargo masks_of_numbers_are_words",
    ),
    Bug(
        "hubs: a short vector is added",
        "a silo's vector of another size changes the sums",
        _CORE,
        "let fits = words.len() == total.len() && rest.is_empty();",
        "let fits = words.len() <= total.len();",
        "cargo numbers_of_another_size",
    ),
    Bug(
        "hubs: other numbers under one mask",
        "a chunk that is made again from other degrees",
        _MASKED,
        "if self._sent.setdefault(number, seen) != seen:",
        "if self._sent.setdefault(number, seen) is None:",
        _RUN + " -k other_numbers",
    ),
    Bug(
        "hubs: parameters without the noise",
        "silos that draw other shares agree",
        _MACHINES,
        "share.numerator, share.denominator, share.shares,",
        "share.shares,",
        _RUN + " -k digest",
    ),
    Bug(
        "hubs: any query",
        "a study that asks for a count is taken for a search",
        _METHOD,
        "if study.query != RELEASE:",
        "if False:",
        _WHOLE,
    ),
    Bug(
        "hubs: the smallest sums",
        "nodes with few edges are named as hubs",
        _ANSWER,
        "np.argsort(-self.degrees, ",
        "np.argsort(self.degrees, ",
        _WHOLE,
    ),
]
