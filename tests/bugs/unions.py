"""Bugs in the private unions: certificates, samplers, masks, messages, ElGamal."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_CORE = "crates/core/src/"
_BERNOULLI = "crates/core/src/dp/bernoulli.rs"
_MASKED = "crates/core/src/crypto/masked.rs"
_PACKED = "crates/core/src/crypto/packed.rs"
_WIDE = "crates/core/src/crypto/simd.rs"
_AGREEMENT = "crates/core/src/crypto/agreement.rs"
_IDENTITY = "crates/core/src/crypto/identity.rs"
_BINDING = "crates/py/src/masked.rs"

_NOISE = "pytest tests/methods/masked/test_noise.py"
_SILENT = "pytest tests/methods/masked/test_machines.py -k follows_the_channel and holders0"
_HELD = "pytest tests/methods/masked/test_machines.py -k follows_the_channel and holders1"
_RESULT = "pytest tests/methods/masked/test_machines.py -k only_held_pairs"
_LEAKS = "pytest tests/methods/masked/test_machines.py -k TestWhatLeaks"
_DECODERS = "pytest tests/messages/test_decoders.py -k packed_vector"
_ORDER = "pytest tests/methods/masked/test_machines.py -k TestOrder"
_HOSTILE = (
    "pytest tests/messages/test_envelope.py tests/methods/masked/test_machines.py"
    " -k TestHostile or digest or test_envelope"
)
_CELLS = "pytest tests/methods/elgamal/test_cipher.py"
_COINS = "pytest tests/methods/elgamal/test_cipher_coins.py"
_HOPS = "pytest tests/methods/elgamal/test_machines.py -k flips_once"
_REFUSALS = "pytest tests/methods/elgamal/test_machines.py -k TestRefusals"
_LEDGER = "pytest tests/local/test_federation.py -k TestLedger"

_CERTIFICATES = [
    Bug(
        "b 2 % too small",
        "every silo adds a little less noise than the certificate counts on",
        "src/silograph/methods/masked/noise.py",
        "return cls(best, b, silos, collusion)",
        "return cls(best, b * 98 / 100, silos, collusion)",
        _NOISE,
    ),
    Bug(
        "b rounded down",
        "the largest b that is too small, one step of 2^-64 below the right one",
        "src/silograph/dp/loss.py",
        "return Fraction(high, STEP) if",
        "return Fraction(low, STEP) if",
        _NOISE,
    ),
    Bug(
        "b for m instead of h",
        "noise chosen as if colluding silos kept theirs secret",
        "src/silograph/methods/masked/noise.py",
        "honest, growth = silos - collusion,",
        "honest, growth = silos,",
        _NOISE,
    ),
    Bug(
        "certificate for m instead of h",
        "the certified loss counts on the coins of silos that collude",
        "src/silograph/methods/masked/noise.py",
        "log_upper(_worst_ratio(self.q, self.b, honest))",
        "log_upper(_worst_ratio(self.q, self.b, self.silos))",
        _NOISE,
    ),
    Bug(
        "certificate of ones alone",
        "the other outcome, a zero, is forgotten where it is the worse one",
        "src/silograph/methods/masked/noise.py",
        "return max(1 / chosen, (1 - shown) * q)",
        "return 1 / chosen",
        _NOISE,
    ),
    Bug(
        "certificate rounded down",
        "the float below the logarithm is printed, not the one above",
        "src/silograph/dp/loss.py",
        "math.nextafter(value, math.inf)",
        "math.nextafter(value, 0.0)",
        "pytest tests/dp/test_channel.py",
    ),
    Bug(
        "certificate rounded to nearest",
        "half of all printed losses are a little below the true ones",
        "src/silograph/dp/loss.py",
        "return value if Decimal(value) >= bound else math.nextafter(value, math.inf)",
        "return value",
        "pytest tests/dp/test_channel.py",
    ),
    Bug(
        "p of randomized response rounded down",
        "one step of 2^-64 less noise than ε asks for",
        "src/silograph/dp/channel.py",
        "return cls(1 - p, p)",
        "p -= Fraction(1, 2**64)\n        return cls(1 - p, p)",
        "pytest tests/dp/test_channel.py",
    ),
    Bug(
        "flip b rounded down",
        "every silo's flip one step of 2^-64 below the right one",
        "src/silograph/methods/elgamal/noise.py",
        "    return flip\n",
        "    return flip - Fraction(1, 2**64)\n",
        "pytest tests/methods/elgamal/test_noise.py",
    ),
    Bug(
        "flips counted for m silos",
        "blinded is certified with the flips of silos that collude",
        "src/silograph/methods/elgamal/noise.py",
        "p = self.flipped(honest)\n",
        "p = self.flipped(self.silos)\n",
        "pytest tests/methods/elgamal/test_noise.py",
    ),
    Bug(
        "printed sold as ε",
        "Algorithm 3 as printed is certified for one response, not for m",
        "src/silograph/methods/elgamal/noise.py",
        'log_upper(ratio**self.silos if self.variant == "printed" else ratio)',
        "log_upper(ratio)",
        "pytest tests/methods/elgamal/test_noise.py",
    ),
    Bug(
        "replace sold against silos",
        "no bound is known against silo 1, and one is claimed",
        "src/silograph/methods/elgamal/noise.py",
        "if honest < self.silos:\n",
        "if honest < 0:\n",
        "pytest tests/methods/elgamal/test_noise.py",
    ),
]

_AUDIT = [
    Bug(
        "an audit that passes everything",
        "what was found is not compared with what is certified",
        "src/silograph/audit/report.py",
        "within = self.exact <= certified and self.seen <= certified",
        "within = not math.isnan(certified)",
        "pytest tests/audit/test_audit.py -k TestPlantedBugs",
    ),
    Bug(
        "an audit of m silos",
        "silos that collude are tried as if they were honest",
        "src/silograph/audit/report.py",
        "silos, honest = noise.silos, noise.silos - against\n",
        "silos, honest = noise.silos, noise.silos\n",
        "pytest tests/audit/test_audit.py -k tight",
    ),
]

_SAMPLER = [
    Bug(
        "coins <= instead of <",
        "a digit that is equal already decides for one",
        _BERNOULLI,
        "below |= open & digit & !word;",
        "below |= open & (digit | !word);",
        "cargo bernoulli",
    ),
    Bug(
        "coins of 8 digits",
        "probabilities are cut to multiples of 1/256",
        _BERNOULLI,
        "let mut i = 0;\n    while open != 0 {",
        "let mut i = 0;\n    while open != 0 && i < 8 {",
        "cargo bernoulli",
    ),
    Bug(
        "coins of 8 digits in the masked union",
        "the same where the first digits of many coins are compared together",
        _BERNOULLI,
        "open[word], TOGETHER);\n            while open != 0 {",
        "open[word], TOGETHER);\n            while open != 0 && i < TOGETHER {",
        "cargo bernoulli",
    ),
    Bug(
        "coins of 8 digits, decided upwards",
        "ties after 8 digits count as ones",
        _BERNOULLI,
        "while open != 0 {\n        let (word, digit) = (rng.next_u64(), p.digit(i));",
        "while open != 0 {\n        let (word, digit) = (rng.next_u64(), p.digit(i));\n"
        "        if i == 8 {\n            return below | open;\n        }",
        "cargo bernoulli",
    ),
    Bug(
        "coupled coins of 8 digits",
        "the same in the coins of ElGamal and of clear releases",
        _BERNOULLI,
        "while open_p | open_r != 0 {",
        "while open_p | open_r != 0 && i < 8 {",
        "cargo bernoulli",
    ),
    Bug(
        "digits end with the table",
        "digits past the 256th are zeros",
        _BERNOULLI,
        "u64::from(last == Some(true))",
        "u64::from(last.is_none())",
        "cargo bernoulli",
    ),
]

_CHOSEN = "*eight = (chosen | held).to_le_bytes();"
_CHOOSE = "desk.choose(bits, b, own.stream(COINS + block as u64));"
_START = "let stream = own.stream(ELEMENTS + block);"
_SET = "|sum, drawn| *sum = drawn,"
_OWN = "self.uniform.draw(stream, places, &mut self.own);"
_MASK = ".draw(key.stream(block), places, &mut masks.words);"

_CONTRIBUTIONS = [
    Bug(
        "no noise in the last silo",
        "the silo that comes last in the roster never tosses a coin",
        "src/silograph/methods/masked/machines.py",
        "parameters.q, limbs(parameters.b))",
        "parameters.q, limbs(parameters.b * (place < parameters.silos - 1)))",
        _SILENT,
    ),
    Bug(
        "no noise at all",
        "coins are all zeros",
        _MASKED,
        _CHOSEN,
        "*eight = (chosen & 0 | held).to_le_bytes();",
        _SILENT,
    ),
    Bug(
        "coins of a known seed",
        "every silo tosses the same coins, which anyone can toss again",
        _MASKED,
        _CHOOSE,
        "desk.choose(bits, b, StreamKey::new(&[0; 32]).stream(COINS + block as u64));",
        _SILENT,
    ),
    Bug(
        "last pair of a chunk without noise",
        "off by one at the end",
        _MASKED,
        _CHOOSE,
        _CHOOSE
        + " let end = pairs - 1; if bits[end / 64] >> (end % 64) & 1 == 0 {"
        + " desk.bytes[end / 8] &= !(1 << (end % 8)); }",
        _SILENT,
    ),
    Bug(
        "last partial group without noise",
        "coins are tossed for whole groups of 1,024 pairs only",
        _BERNOULLI,
        "for bits in bits.chunks_mut(GROUP) {",
        "for bits in bits.chunks_exact_mut(GROUP) {",
        _SILENT,
    ),
    Bug(
        "coins reused for every word",
        "64 coins for a whole block of pairs",
        _MASKED,
        _CHOSEN,
        "*eight = ((chosen & 0) | self.chosen[0] | held).to_le_bytes();",
        _LEAKS,
    ),
    Bug(
        "coins reused for every block",
        "the coins of 65,536 pairs come again in the next ones",
        _MASKED,
        "own.stream(COINS + block as u64)",
        "own.stream(COINS + block as u64 * 0)",
        _LEAKS,
    ),
    Bug(
        "coins reused for every chunk",
        "a silo's own seed does not depend on the chunk",
        _BINDING,
        '.derive(b"silograph/contribution/v2", &chunk.to_le_bytes());',
        '.derive(b"silograph/contribution/v2", &[]);',
        _LEAKS,
    ),
    Bug(
        "elements reused for every block",
        "the uniform elements of 65,536 pairs come again in the next ones",
        _MASKED,
        _START,
        "let stream = own.stream(ELEMENTS + block * 0);",
        _LEAKS,
    ),
    Bug(
        "coins from the stream of the elements",
        "whether a pair is chosen depends on what it would contribute",
        _MASKED,
        "const COINS: u64 = 1 << 63;",
        "const COINS: u64 = 0;",
        _LEAKS,
    ),
    Bug(
        "elements of a byte",
        "contributions come of bytes, which are too few to be even, with nothing refused",
        _MASKED,
        _OWN,
        _OWN + " self.own.iter_mut().for_each(|word| *word &= 0xff00);",
        _LEAKS,
    ),
    Bug(
        "element 0 never drawn",
        "a pair that someone holds always shows",
        _MASKED,
        _SET,
        "|sum, drawn| *sum = drawn.max(1),",
        _HELD,
    ),
    Bug(
        "last element never drawn",
        "contributions are uniform on one element too few, one digit of a word at least",
        _MASKED,
        _OWN,
        _OWN + " let q = self.ring.q() as u16;"
        " self.own.iter_mut().for_each(|word| *word -= *word / q);",
        _LEAKS,
    ),
    Bug(
        "held pairs contribute 1",
        "the sum counts holders, and coins, instead of hiding them",
        _MASKED,
        _SET,
        "|sum, _drawn| *sum = 1,",
        _HELD,
    ),
    Bug(
        "elements of one word",
        "uniform elements, but the same few for all pairs of a block",
        _MASKED,
        _OWN,
        _OWN + " let first = self.own[0]; self.own.fill(first);",
        _LEAKS,
    ),
    Bug(
        "coins on held pairs",
        "the coin decides where the pair is held, not where it is not",
        _MASKED,
        _CHOSEN,
        "*eight = (!chosen & held).to_le_bytes();",
        _HELD,
    ),
]

_PACKING = [
    Bug(
        "a word of q^d accepted",
        "more digits than a word has wrap around, so that a vector has two encodings",
        _PACKED,
        "if largest > most {",
        "if largest > most + 1 {",
        "cargo packed",
    ),
    Bug(
        "any word accepted",
        "a silo's word may be anything",
        _PACKED,
        "if largest > most {",
        "if largest > most && most > largest {",
        _DECODERS,
    ),
    Bug(
        "digits past the end accepted",
        "the last word carries what nobody asked for",
        _PACKED,
        "> Some(self.largest(digits)) {",
        "> Some(self.largest(digits.max(self.digits))) {",
        _DECODERS,
    ),
    Bug(
        "places past the end masked",
        "a silo fills the last word with masks",
        _MASKED,
        "for place in pairs..self.words * self.ring.digits() {",
        "for place in pairs + 1..self.words * self.ring.digits() {",
        _RESULT,
    ),
    Bug(
        "one digit fewer in a word",
        "a word holds fewer elements than fit",
        _PACKED,
        "(1u64 << 32).ilog(q.into()));",
        "(1u64 << 31).ilog(q.into()));",
        "cargo packed",
    ),
    Bug(
        "a sum of q is not zero",
        "two elements that cancel show as an edge",
        _WIDE,
        "_mm512_sub_epi16(sum, all(ring.q * times as u32));",
        "_mm512_sub_epi16(sum, all(ring.q * times as u32 + 1));",
        _RESULT,
    ),
    Bug(
        "a sum of q is not zero, without AVX-512",
        "two elements that cancel show as an edge",
        _PACKED,
        "sums[i] = less(q, sums[i], q.wrapping_sub(digits[i]));",
        "sums[i] = sums[i].wrapping_add(digits[i]) - q * u16::from(sums[i] + digits[i] > q);",
        "cargo packed",
    ),
    Bug(
        "quotients one too small",
        "digits of a word are wrong where a division comes out even",
        _PACKED,
        "let more = u32::from(rest >= self.unit);",
        "let more = u32::from(rest > self.unit);",
        "cargo packed",
    ),
    Bug(
        "wide quotients one too small",
        "digits of a word are wrong where a division comes out even",
        _WIDE,
        "let more = _mm512_cmpge_epu32_mask(rest, unit);",
        "let more = _mm512_cmpge_epu32_mask(rest, unit) & 0;",
        "cargo packed",
    ),
    Bug(
        "fractions rounded down",
        "a part begins with the digits of the one before it",
        _PACKED,
        "(found + u32::from(found * unit < part << 16)) as u16",
        "found as u16",
        "cargo packed",
    ),
    Bug(
        "wide fractions rounded down",
        "a part begins with the digits of the one before it",
        _WIDE,
        "high_halves(found, unit), part) & inexact;",
        "high_halves(found, unit), part) & inexact & 0;",
        "cargo packed",
    ),
    Bug(
        "vectors that wait are lost",
        "the fifth silo's vector replaces those before it",
        _PACKED,
        "self.total = self.packed();",
        "self.total = vec![];",
        "cargo packed",
    ),
    Bug(
        "vectors are not looked at",
        "a silo's vector may be anything",
        _PACKED,
        "self.ring.check(self.pairs, vector.as_ref())?;",
        "self.ring.check_length(self.pairs, vector.as_ref())?;",
        _DECODERS,
    ),
]

_CONTEXT = "binding.run, binding.parameters, binding.roster.digest, *ends"

_MASKS = [
    Bug(
        "mask reused between chunks",
        "the chunk's number is not in the seed",
        _AGREEMENT,
        'b"silograph/mask/v2", &chunk.to_le_bytes())',
        'b"silograph/mask/v2", &(chunk & 0).to_le_bytes())',
        "cargo agreement",
    ),
    Bug(
        "mask reused between chunks, at the binding",
        "every chunk is masked as if it were the first",
        _BINDING,
        "seed: s.chunk_seed(chunk),",
        "seed: s.chunk_seed(0),",
        _LEAKS,
    ),
    Bug(
        "mask reused between blocks",
        "the masks of 65,536 pairs come again in the next ones",
        _MASKED,
        _MASK,
        ".draw(key.stream(block * 0), places, &mut masks.words);",
        _LEAKS,
    ),
    Bug(
        "context of a pair ignored",
        "masks do not depend on run, parameters, roster and the two silos",
        _AGREEMENT,
        'b"silograph/pair/v1", context)',
        'b"silograph/pair/v1", &context[..0])',
        "cargo agreement",
    ),
    Bug(
        "context without the run",
        "run keys that come again by mistake give masks that come again",
        "src/silograph/messages/secrecy.py",
        _CONTEXT,
        _CONTEXT.replace("binding.run, ", ""),
        _LEAKS,
    ),
    Bug(
        "context without the parameters",
        "as before, for another question about the same silos",
        "src/silograph/messages/secrecy.py",
        _CONTEXT,
        _CONTEXT.replace("binding.parameters, ", ""),
        _LEAKS,
    ),
    Bug(
        "context without the roster",
        "as before, among other parties",
        "src/silograph/messages/secrecy.py",
        _CONTEXT,
        _CONTEXT.replace("binding.roster.digest, ", ""),
        _LEAKS,
    ),
    Bug(
        "no masks",
        "every silo uploads its bare contributions",
        _MASKED,
        "desk.sum();\n                desk.finish",
        "desk.masks.clear();\n                desk.sum();\n                desk.finish",
        _LEAKS,
    ),
    Bug(
        "masks not added by one party",
        "the later silo of each pair does not subtract",
        _MASKED,
        "shared.iter().map(key).collect()",
        "shared.iter().filter(|peer| peer.add).map(key).collect()",
        _RESULT,
    ),
    Bug(
        "a pair of silos without a mask",
        "silos 2 and 3 leave theirs out: it cancels anyway, but silo 1 can look",
        "src/silograph/messages/secrecy.py",
        "        if place == own:\n",
        "        if place == own or {place, own} == {1, 2}:\n",
        _LEAKS,
    ),
    Bug(
        "mask sign wrong for one party",
        "both silos of a pair add",
        "src/silograph/messages/secrecy.py",
        "Pair(place, key, context, own == first)",
        "Pair(place, key, context, True)",
        _RESULT,
    ),
    Bug(
        "modulo bias in all elements",
        "no word is refused",
        _MASKED,
        "let bounds = (self.power, self.refused);",
        "let bounds = (self.power, self.refused & 0);",
        "cargo masked",
    ),
    Bug(
        "masks of a byte",
        "masks come of bytes, which are too few to be even, with nothing refused",
        _MASKED,
        _MASK,
        _MASK + " masks.words.iter_mut().for_each(|word| *word &= 0xff00);",
        _LEAKS,
    ),
    Bug(
        "weak run key accepted",
        "a key of small order gives a secret that everyone knows",
        _AGREEMENT,
        "shared\n            .was_contributory()\n            .then(",
        "(shared.was_contributory() || true)\n            .then(",
        "cargo agreement",
    ),
]

_MESSAGES = [
    Bug(
        "signatures not checked",
        "anyone can speak for a silo",
        "src/silograph/messages/envelope.py",
        "verify(sender.public, _signed(binding, envelope), signature, who=who)",
        "len(sender.public) and _signed(binding, envelope)",
        _HOSTILE,
    ),
    Bug(
        "signatures of keys not checked",
        "the coordinator can put its own run key for a silo's",
        "src/silograph/messages/envelope.py",
        "        verify(sender.public, _signed(binding, envelope), signature, who=who)",
        '        if envelope.round != "key":\n'
        "            verify(sender.public, _signed(binding, envelope), signature, who=who)",
        _HOSTILE,
    ),
    Bug(
        "signature without the run",
        "a message of one run can be relabelled for another",
        "src/silograph/messages/envelope.py",
        "head = (_MAGIC, binding.run, binding.parameters, binding.roster.digest)",
        "head = (_MAGIC, binding.parameters, binding.roster.digest)",
        _HOSTILE,
    ),
    Bug(
        "signature without the parameters",
        "a message can be relabelled for a run with less noise",
        "src/silograph/messages/envelope.py",
        "head = (_MAGIC, binding.run, binding.parameters, binding.roster.digest)",
        "head = (_MAGIC, binding.run, binding.roster.digest)",
        _HOSTILE,
    ),
    Bug(
        "signature without the roster",
        "a message holds for other parties than its sender meant",
        "src/silograph/messages/envelope.py",
        "head = (_MAGIC, binding.run, binding.parameters, binding.roster.digest)",
        "head = (_MAGIC, binding.run, binding.parameters)",
        _HOSTILE,
    ),
    Bug(
        "signature without the payload",
        "what a silo said can be changed on the way",
        "src/silograph/messages/envelope.py",
        "_core.payload_digest(self.content, self.start)",
        "_core.payload_digest(self.content, len(self.content))",
        _HOSTILE,
    ),
    Bug(
        "roster digest without the keys",
        "parties agree on names, not on who bears them",
        "src/silograph/messages/identity.py",
        "yield from (role, member.name.encode(), member.public, member.organisation.encode())",
        "yield from (role, member.name.encode(), member.organisation.encode())",
        _HOSTILE,
    ),
    Bug(
        "roster digest without the roles",
        "a helper is a silo to some parties, and to others not",
        "src/silograph/messages/identity.py",
        "yield from (role, member.name.encode(), member.public, member.organisation.encode())",
        "yield from (member.name.encode(), member.public, member.organisation.encode())",
        _HOSTILE,
    ),
    Bug(
        "roster digest without the organisations",
        "one organisation is shown as four",
        "src/silograph/messages/identity.py",
        "yield from (role, member.name.encode(), member.public, member.organisation.encode())",
        "yield from (role, member.name.encode(), member.public)",
        _HOSTILE,
    ),
    Bug(
        "a helper's message is heard as a silo's",
        "whoever has no edges has a say in the union",
        "src/silograph/messages/machine.py",
        "if ours and not self._binding.roster.has_silo(message.sender):",
        "if ours and message.sender < 0:",
        _HOSTILE,
    ),
    Bug(
        "parameters digest without b",
        "silos may add different noise and not notice",
        "src/silograph/methods/masked/machines.py",
        "fields += [str(self.b).encode(), self.subject, _STREAM, _PACKING]",
        "fields += [self.subject, _STREAM, _PACKING]",
        _HOSTILE,
    ),
    Bug(
        "weak identity accepted",
        "a key of small order signs everything",
        _IDENTITY,
        "!key.is_weak() && key",
        "key",
        "cargo identity",
    ),
    Bug(
        "confirmations not compared",
        "silos that were shown different run keys go on",
        "src/silograph/messages/secrecy.py",
        "if view != own:",
        "if len(view) != len(own):",
        _HOSTILE,
    ),
    Bug(
        "confirmations not compared (ElGamal)",
        "silos that were shown different keys go on",
        "src/silograph/methods/elgamal/silo.py",
        "if view != self._view:",
        "if len(view) != len(self._view):",
        _REFUSALS,
    ),
    Bug(
        "confirmation without the run keys",
        "the digest is the same whatever keys were shown",
        "src/silograph/messages/secrecy.py",
        "        binding.roster.digest,\n        *keys,\n",
        "        binding.roster.digest,\n",
        _HOSTILE,
    ),
    Bug(
        "confirmation without the parameters",
        "the digest is the same whatever noise was agreed on",
        "src/silograph/messages/secrecy.py",
        "        binding.run,\n        binding.parameters,\n",
        "        binding.run,\n",
        _HOSTILE,
    ),
    Bug(
        "confirmation without the roster",
        "the digest is the same whoever takes part",
        "src/silograph/messages/secrecy.py",
        "        binding.roster.digest,\n        *keys,\n",
        "        *keys,\n",
        _HOSTILE,
    ),
    Bug(
        "confirmation without the parameters (ElGamal)",
        "the digest is the same whatever noise was agreed on",
        "src/silograph/methods/elgamal/silo.py",
        'pack(b"silograph/elgamal/view/v1", self._binding.parameters, joint.binding)',
        'pack(b"silograph/elgamal/view/v1", joint.binding)',
        _REFUSALS,
    ),
]

_DRIVEN = """\
        spend()
        with progress(what, total, shown=shown) as advance:

            def moved() -> None:
                nonlocal before
                (done, _), last = coordinator.progress, before
                if done > last:
                    before = done
                    advance(done - last)

            post.deliver(enumerate([silo.authorise() for silo in silos]), moved)
            for sender, made in _made(coordinator, silos, pool):
                post.deliver([(sender, made)], moved)
"""

_STEPS = [
    Bug(
        "a chunk before the ledger",
        "masked contributions leave before the run is authorised",
        "src/silograph/methods/masked/machines.py",
        '(State.CONFIRMS, "confirms"): State.AGREED,',
        '(State.CONFIRMS, "confirms"): State.AGREED,\n    (State.AGREED, "chunk"): State.AGREED,',
        _ORDER,
    ),
    Bug(
        "a hop before the ledger",
        "cells leave before the run is authorised",
        "src/silograph/methods/elgamal/rounds.py",
        '(State.CONFIRMS, "confirms"): State.AGREED,',
        '(State.CONFIRMS, "confirms"): State.AGREED,\n    (State.AGREED, "work"): State.AGREED,',
        _REFUSALS,
    ),
    Bug(
        "spent after the first chunk",
        "a crash leaves chunks and cells that nobody paid for",
        "src/silograph/local/drive.py",
        _DRIVEN,
        _DRIVEN.removeprefix("        spend()\n") + "        spend()\n",
        _LEDGER,
    ),
    Bug(
        "parties that share a secret",
        "every silo's noise and masks follow from the coordinator's secret",
        "src/silograph/local/drive.py",
        "plan.silo(roster, place, identity, RunEntropy(entropy.bytes(32)), silo)",
        "plan.silo(roster, place, identity, RunEntropy(bytes(32)), silo)",
        "pytest tests/nats/test_transcripts.py -k masked",
    ),
    Bug(
        "masked: chunks in any order",
        "a silo makes the coordinator begin every chunk, and fills its memory",
        "src/silograph/messages/rounds.py",
        "        return number < self._taken[place] + _BEFORE_TURN\n",
        "        return True\n",
        "pytest tests/methods/masked/test_machines.py -k before_their_turn",
    ),
    Bug(
        "triangles: ones behind the end of a row",
        "rows that were made elsewhere end the process, or count otherwise with AVX-512",
        "crates/core/src/graph/kernels.rs",
        "            *last &= !(u64::MAX << used);\n",
        "            *last &= u64::MAX >> (used - used);\n",
        "cargo graph::kernels",
    ),
    Bug(
        "clear: noise that is not drawn",
        "a release in the clear is the bare union",
        "src/silograph/methods/clear/machines.py",
        "noisy = _core.perturb(union.tobytes(), self._parameters.pairs, p11, p01, self._seed)",
        "noisy = union.tobytes()",
        "pytest tests/local/test_federation.py",
    ),
    Bug(
        "a machine that takes any message",
        "what a party does by itself can be sent to it",
        "src/silograph/messages/machine.py",
        "if message.round not in self.TAKES:",
        "if message.round in ():",
        "pytest tests/messages/test_decoders.py -k by_itself",
    ),
    Bug(
        "a machine that hears anyone",
        "a silo takes another silo's word for the coordinator's",
        "src/silograph/messages/machine.py",
        "if not ours and message.sender != COORDINATOR:",
        "if ours and message.sender != message.sender:",
        "pytest tests/methods/masked/test_machines.py tests/methods/featplus/test_shared_view.py",
    ),
    Bug(
        "a machine without its table",
        "messages are taken in any state",
        "src/silograph/messages/machine.py",
        "if (self.state, message.round) not in self.STEPS:",
        "if (self.state, message.round) in ():",
        "pytest tests/methods/masked/test_machines.py tests/methods/featplus/test_noisy_vectors.py",
    ),
    Bug(
        "one loss for all levels in the ledger",
        "colluding silos are booked as if they did not",
        "src/silograph/methods/union.py",
        "losses = {t: noise.epsilon(silos - t) for t in range(silos)}",
        "losses = {t: noise.epsilon(silos) for t in range(silos)}",
        _LEDGER,
    ),
    Bug(
        "a chunk accepted twice",
        "a silo's vector is added again",
        "src/silograph/methods/masked/machines.py",
        "if envelope.sender in seen:",
        "if envelope.sender in ():",
        _ORDER,
    ),
    Bug(
        "a chunk made again from other bits",
        "two vectors under one mask show where they differ",
        "src/silograph/methods/masked/machines.py",
        "if self._sent.setdefault(number, seen) != seen:",
        "if not self._sent.setdefault(number, seen):",
        _ORDER,
    ),
    Bug(
        "entropy that repeats",
        "every secret of every run is the same",
        "src/silograph/messages/entropy.py",
        "return os.urandom(count)",
        "return bytes(count)",
        "pytest tests/local/test_federation.py -k entropy",
    ),
]

_ELGAMAL_BUGS = [
    Bug(
        "kept cells not re-randomised",
        "a cell that a silo keeps is doubled, and nothing else",
        "crates/core/src/crypto/elgamal/cells.rs",
        "let mut r = draw_scalar(&mut rng);",
        "let fresh = cell.c1 == RistrettoPoint::identity();\n"
        "                let mut r = draw_scalar(&mut rng)\n"
        "                    * curve25519_dalek::scalar::Scalar::from(u8::from(fresh));",
        _CELLS + " -k doubled",
    ),
    Bug(
        "randomisers reused within a chunk",
        "every block of 64 cells draws the same ones",
        "crates/core/src/crypto/elgamal/cells.rs",
        "let mut rng = streams.block(block);",
        "let mut rng = streams.block(block * 0);",
        "cargo no_randomiser_is_used_twice",
    ),
    Bug(
        "randomisers do not depend on the cells",
        "a seed used twice encrypts two things under one randomiser",
        "crates/core/src/crypto/elgamal/cells.rs",
        ".fold(start, |all, input| all.bytes(input))",
        ".fold(start, |all, input| all.bytes(&input[..0]))",
        "cargo deterministic",
    ),
    Bug(
        "hop coins reused between hops",
        "two flips with one coin cancel",
        "crates/core/src/crypto/elgamal/hops.rs",
        ".number(place.hops.into())",
        ".number(u64::from(place.hops) * 0)",
        _COINS + " -k same",
    ),
    Bug(
        "hop coins reused between chunks",
        "the noise of one chunk is that of the next",
        "crates/core/src/crypto/elgamal/hops.rs",
        ".number(place.chunk)",
        ".number(place.chunk * 0)",
        _COINS + " -k same",
    ),
    Bug(
        "hop coins reused within a chunk",
        "64 coins for the whole chunk",
        "crates/core/src/crypto/elgamal/hops.rs",
        "    for bytes in out.chunks_mut(8) {\n        let (word, _) = coupled(&mut rng, p, p);",
        "    let (word, _) = coupled(&mut rng, p, p);\n    for bytes in out.chunks_mut(8) {",
        _COINS + " -k within",
    ),
    Bug(
        "last cells of a chunk without coins",
        "coins are tossed for whole words of 64 cells only",
        "crates/core/src/crypto/elgamal/hops.rs",
        "out.chunks_mut(8) {",
        "out.chunks_exact_mut(8) {",
        _COINS + " -k channels",
    ),
    Bug(
        "silo 1 encrypts its bits as they are",
        "the first response is left out",
        "crates/core/src/crypto/elgamal/hops.rs",
        "encrypt(key, &respond(bits, &flips), count, chunk, seed)",
        "encrypt(key, &bits[..flips.len()], count, chunk, seed)",
        _COINS + " -k channels",
    ),
    Bug(
        "replace writes Enc(1)",
        "a later holder overwrites with a one, not with a response",
        "crates/core/src/crypto/elgamal/hops.rs",
        "let values = respond(&ones(count), &flips);",
        "let values = ones(count.min(8 * flips.len()));",
        _COINS + " -k channels",
    ),
    Bug(
        "flips skipped by one silo",
        "blinded lacks the flips of the last silo",
        "src/silograph/methods/elgamal/silo.py",
        "joint.flip_hop(cells, given.coin, place, seed))",
        "joint.flip_hop(cells, given.coin * (hop < given.hops - 1), place, seed))",
        _HOPS,
    ),
    Bug(
        "receipts not checked at opening",
        "the coordinator has the exact union opened",
        "src/silograph/methods/elgamal/silo.py",
        "        self._check_receipts(chunk, final, receipts)\n",
        "",
        _REFUSALS,
    ),
    Bug(
        "receipts not chained",
        "a hop may have been done on other cells than the one before put out",
        "src/silograph/methods/elgamal/silo.py",
        "if (of_chunk, of_hop) != (chunk, hop) or came != previous:",
        "if (of_chunk, of_hop) != (chunk, hop):",
        _REFUSALS,
    ),
    Bug(
        "opened cells not those of the last hop",
        "receipts are in order, but for other cells",
        "src/silograph/methods/elgamal/silo.py",
        "if previous != final:",
        "if len(previous) != len(final):",
        _REFUSALS,
    ),
    Bug(
        "a hop done again on other cells",
        "the same coins on two inputs show what changed",
        "src/silograph/methods/elgamal/silo.py",
        '        self._check_once("hop", chunk, hop, came)\n',
        "",
        _REFUSALS,
    ),
    Bug(
        "a chunk opened twice",
        "a second set of cells is opened for the same pairs",
        "src/silograph/methods/elgamal/silo.py",
        '        self._check_once("open", chunk, 0, final)\n',
        "",
        _REFUSALS,
    ),
    Bug(
        "shares not verified",
        "the proof of equal logarithms is not looked at",
        "crates/core/src/crypto/elgamal/decrypt.rs",
        "verify_shares(key.key(silo), &statement, packed, &points, proof, silo)?;",
        "let _ = verify_shares(key.key(silo), &statement, packed, &points, proof, silo);",
        "cargo wrong_share",
    ),
    Bug(
        "coefficients known before the shares",
        "errors can be made to cancel in the batch",
        "crates/core/src/crypto/elgamal/decrypt.rs",
        "        .bytes(cells)\n        .bytes(shares)\n",
        "        .bytes(cells)\n        .bytes(&shares[..0])\n",
        "cargo errors_that_fit",
    ),
    Bug(
        "shares of any chunk",
        "a proof of shares holds for other chunks of the run",
        "crates/core/src/crypto/elgamal/decrypt.rs",
        "        .number(place.chunk)\n",
        "        .number(place.chunk * 0)\n",
        _CELLS + " -k shares_hold",
    ),
    Bug(
        "possession not verified",
        "a silo may choose a key that cancels the others'",
        "crates/core/src/crypto/elgamal/keys.rs",
        "verify_possession(&key, run, member.identity, member.proof, silo)?;",
        "let _ = verify_possession(&key, run, member.identity, member.proof, silo);",
        "cargo prove_nothing",
    ),
    Bug(
        "possession not bound to the run",
        "a proof of one run serves in another",
        "crates/core/src/crypto/elgamal/proofs.rs",
        "        .bytes(&run.id)\n        .bytes(identity)\n        .bytes(key)\n",
        "        .bytes(identity)\n        .bytes(key)\n",
        _CELLS + " -k proofs_hold",
    ),
    Bug(
        "possession not bound to the key",
        "a key can be fitted to a proof",
        "crates/core/src/crypto/elgamal/proofs.rs",
        "        .bytes(identity)\n        .bytes(key)\n",
        "        .bytes(identity)\n        .bytes(&key[..0])\n",
        "cargo fitted",
    ),
    Bug(
        "nonces that repeat",
        "two proofs under one nonce show the secret key",
        "crates/core/src/crypto/elgamal/proofs.rs",
        "        .bytes(statement)\n        .scalar()",
        "        .bytes(&statement[..0])\n        .scalar()",
        "cargo a_nonce_depends",
    ),
    Bug(
        "identity accepted",
        "the identity element passes for a cell, a share or a key",
        "crates/core/src/crypto/elgamal/mod.rs",
        "if bytes == &[0; POINT_BYTES] {",
        "if bytes == &[0xff; POINT_BYTES] {",
        _CELLS + " -k bad_points",
    ),
    Bug(
        "keys may cancel",
        "public keys that sum to the identity encrypt nothing",
        "crates/core/src/crypto/elgamal/keys.rs",
        "if joint.is_identity() {",
        "if joint.is_identity() && keys.is_empty() {",
        "cargo cancel",
    ),
]

BUGS = [
    *_CERTIFICATES,
    *_AUDIT,
    *_SAMPLER,
    *_CONTRIBUTIONS,
    *_PACKING,
    *_MASKS,
    *_MESSAGES,
    *_STEPS,
    *_ELGAMAL_BUGS,
]
