"""Bugs in the sealed protocol: numbers from bits, counts, noise, bounds, openings, order."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_CHUNK = "crates/core/src/committee/chunk.rs"
_NUMBERS = "crates/core/src/committee/numbers.rs"
_OPENING = "crates/core/src/committee/opening.rs"
_COUNT = "crates/core/src/committee/count.rs"
_PARTS = "crates/core/src/committee/parts.rs"
_SEEDS = "crates/core/src/committee/seeds.rs"
_BINDING = "crates/py/src/numbers.rs"
_ROUNDS = "src/silograph/methods/sealed/rounds.py"
_PARTY = "src/silograph/methods/sealed/party.py"
_COORDINATOR = "src/silograph/methods/sealed/coordinator.py"
_HOST = "src/silograph/methods/committee/coordinator.py"
_METHOD = "src/silograph/methods/sealed/method.py"
_LAWS = "src/silograph/methods/sealed/noise.py"
_MEMBER = "src/silograph/methods/committee/member.py"

_FOLDER = "pytest tests/methods/sealed/"
_EXACT = f"{_FOLDER}test_machines.py -k every_committee or each_answer_alone"
_PIECES = f"{_FOLDER}test_machines.py -k any_order_of_arrival"
_PHASES = f"{_FOLDER}test_machines.py -k TestPhases"
_PARAMETERS = f"{_FOLDER}test_machines.py -k TestParameters"
_MIXING = f"{_FOLDER}test_mixing.py"
_STREAMS = f"{_FOLDER}test_streams.py"
_DIRECTIONS = f"{_FOLDER}test_hostile.py -k second_chunk"
_BOUND = f"{_FOLDER}test_hostile.py -k TestBound"
_NOISE = f"{_FOLDER}test_hostile.py -k TestNoise"
_EDGES = f"{_FOLDER}test_hostile.py -k TestEdges"
_SIZES = f"{_FOLDER}test_hostile.py -k TestSizes"
_REFUSED = f"{_FOLDER}test_hostile.py -k TestRefused and not Beside"
_OPENINGS = f"{_FOLDER}test_hostile.py -k TestCoordinator"

_NUMBERS_OF_BITS = [
    Bug(
        "one mask for all numbers that a member is sent",
        "two messages to it differ by what they should hide",
        _SEEDS,
        "Self::Number { sender } => [3, sender as u64, 0],",
        "Self::Number { .. } => [3, 0, 0],",
        _STREAMS,
    ),
    Bug(
        "masks of numbers from the streams of gates",
        "what hides a number has hidden a product before",
        _SEEDS,
        "Self::Number { sender } => [3, sender as u64, 0],",
        "Self::Number { sender } => [1, 0, sender as u64],",
        _STREAMS,
    ),
    Bug(
        "numbers sent without their masks",
        "the receiver sees components that it lacks",
        _NUMBERS,
        "            read::<W>(bytes, words);\n            self.add(route.receiver, start, words);\n",
        "            bytes.fill(0);\n            read::<W>(bytes, words);\n"
        "            self.add(route.receiver, start, words);\n",
        _STREAMS,
    ),
    Bug(
        "all chunks of numbers in the same directions",
        "two members send everything, and the plan of the other chunks is not kept",
        _NUMBERS,
        "route.parity as u64 == number % 2 && together",
        "route.parity as u64 == number & 0 && together",
        _DIRECTIONS,
    ),
    Bug(
        "f·s subtracted once",
        "a pair that two halves hold counts once too often",
        _NUMBERS,
        "_ => (&mut self.numbers, 2u64.wrapping_neg()),",
        "_ => (&mut self.numbers, 1u64.wrapping_neg()),",
        _EXACT,
    ),
    Bug(
        "the second half of a bit left out",
        "numbers are those of one half",
        _NUMBERS,
        "*mask = ((a ^ b) >> place & 1).wrapping_sub(*mask);",
        "*mask = (a >> place & 1).wrapping_sub(*mask);",
        _EXACT,
    ),
    Bug(
        "the last message of numbers used before it is compared",
        "a member that cheats weighs an edge",
        _CHUNK,
        "            if !bool::from(expected.finalize().as_slice().ct_eq(hash)) {\n",
        "            let free = self.layer + 1 == circuit.layers() && circuit.width().is_some();\n"
        "            if !bool::from(expected.finalize().as_slice().ct_eq(hash)) && !free {\n",
        _EDGES,
    ),
    Bug(
        "numbers of whole words where the sizes are those of w bits",
        "carries above the low bits are sent",
        _BINDING,
        "Ok(PyBytes::new(py, &word.to_le_bytes()[..self.width]))",
        "Ok(PyBytes::new(py, &word.to_le_bytes()))",
        _SIZES,
    ),
]

_GROUPS = [
    Bug(
        "edges by groups in the rows of a larger matrix",
        "a pair counts for other groups than its own",
        _COUNT,
        "row_start(self.groups + 1, low) + high - low",
        "row_start(self.groups, low) + high - low",
        _MIXING,
    ),
    Bug(
        "edges by groups from the wrong end of a row",
        "a pair gets the group of another node",
        _COUNT,
        "for (other, word) in self.labels[j..j + length].iter().zip(&mut words) {",
        "for (other, word) in self.labels[j - 1..j - 1 + length].iter().zip(&mut words) {",
        _MIXING,
    ),
    Bug(
        "groups that are not in the digest",
        "two members count other cells, and nobody notices",
        _ROUNDS,
        'fields.append(pack(b"groups", str(self.groups).encode(), self.labels))',
        'fields.append(pack(b"groups", str(self.groups).encode()))',
        _MIXING,
    ),
    Bug(
        "groups of another number of nodes taken",
        "a silo begins what it cannot count",
        _METHOD,
        "if len(text) != study.nodes or not set(text)",
        "if not set(text)",
        _MIXING,
    ),
    Bug(
        "any letter names a group",
        "a node is in a group that the study does not have",
        _METHOD,
        "not set(text) <= set(_LETTERS[: len(names)])",
        "not set(text) <= set(_LETTERS)",
        _MIXING,
    ),
    Bug(
        "edges by groups with the noise of degrees",
        "half of epsilon is left, and the answer is less exact than it could be",
        _LAWS,
        'budget = self.budgets[answer] / (2 if answer == "degrees" else 1)',
        'budget = self.budgets[answer] / (2 if answer in ("degrees", "mixing") else 1)',
        _MIXING,
    ),
    Bug(
        "edges by groups with twice their budget",
        "half of the noise that epsilon needs",
        _LAWS,
        "return self.sensitivity(answer, bound), budget",
        'return self.sensitivity(answer, bound), budget * (2 if answer == "mixing" else 1)',
        _MIXING,
    ),
]

_COUNTS = [
    Bug(
        "u and v change places in the triangles",
        "a square is multiplied with the wrong component",
        _COUNT,
        "first[pairs.clone()].copy_from_slice(&u[..count]);",
        "first[pairs.clone()].copy_from_slice(&v[..count]);",
        _EXACT,
    ),
    Bug(
        "c taken once in the triangles",
        "a third of the products of three components",
        _COUNT,
        "let across = last[pairs.clone()].iter().map(|c| c.wrapping_mul(3));",
        "let across = last[pairs.clone()].iter().map(|c| c.wrapping_mul(1));",
        _EXACT,
    ),
    Bug(
        "a product of 2-stars counted by three members",
        "2cv is that of members 0 and 1 alone",
        _COUNT,
        "let across = if self.place < 2 { *c } else { 0 };",
        "let across = if self.place < 3 { *c } else { 0 };",
        _EXACT,
    ),
    Bug(
        "degrees subtracted once from the 2-stars",
        "an edge is a 2-star with itself",
        _COUNT,
        "sum.wrapping_sub(self.edges[c].wrapping_mul(2))",
        "sum.wrapping_sub(self.edges[c])",
        _EXACT,
    ),
    Bug(
        "bits that stand for no pair are counted",
        "a silo adds to the number of edges what is nobody's",
        _COUNT,
        "*sum = words.iter().fold(*sum,",
        "*sum = numbers.components[component].iter().fold(*sum,",
        _EDGES,
    ),
    Bug(
        "triangles of a band counted twice",
        "rows overlap",
        _PARTY,
        "self._count.contract(first, self._rows)",
        "self._count.contract(max(first - 1, 0), self._rows)",
        _PIECES,
    ),
    Bug(
        "triangles counted before all pairs are there",
        "those that come later are not in it",
        _PARTY,
        "return self._all_pairs and self._weighed and self._rows < self._parameters.nodes",
        "return self._counted > 0 and self._rows < self._parameters.nodes",
        f"{_FOLDER}test_machines.py -k wait_for_all_pairs",
    ),
    Bug(
        "numbers one bit too short",
        "an answer with its noise comes back with the other sign",
        _ROUNDS,
        "width = (largest.bit_length() + 8) // 8",
        "width = (largest.bit_length() + 7) // 8",
        _PARAMETERS,
    ),
    Bug(
        "numbers that are opened are not centred",
        "what is below zero becomes very large",
        _NUMBERS,
        "(word << shift).cast_signed() >> shift;",
        "(word << shift >> shift).cast_signed();",
        _EXACT,
    ),
    Bug(
        "counts are not centred",
        "the same, for a sum of summands",
        _COORDINATOR,
        "centred = total - (total >> (bits - 1) << bits)",
        "centred = total",
        f"{_FOLDER}test_machines.py -k every_width",
    ),
]

_DRAWN = [
    Bug(
        "a component of the noise published by two members",
        "another one by nobody: what is missing is uniform, and the noise is another one",
        _COUNT,
        "        let [c, ..] = self.held();\n        let noise = noise.components[c][0]",
        "        let [c, d, _] = self.held();\n"
        "        let noise = noise.components[if self.place == 0 { d } else { c }][0]",
        _EXACT,
    ),
    Bug(
        "noise of a count without its factor",
        "a sixth of the noise that is paid for",
        _COUNT,
        "let noise = noise.components[c][0].wrapping_mul(factor);",
        "let noise = noise.components[c][0].wrapping_mul(factor / factor);",
        _EXACT,
    ),
    Bug(
        "summands without shares of zero",
        "the coordinator sees what each member has counted",
        _COUNT,
        "sum.wrapping_add(zero(seeds, self.place, output)) & low(self.width)",
        "sum.wrapping_add(zero(seeds, self.place, output) & 0) & low(self.width)",
        _STREAMS,
    ),
    Bug(
        "the same shares of zero for all outputs",
        "the difference of two summands hides nothing",
        _COUNT,
        "seeds.words(component, output, Purpose::Zero, 2)",
        "seeds.words(component, output & 0, Purpose::Zero, 2)",
        _STREAMS,
    ),
    Bug(
        "shares of zero from the streams of parts",
        "what hides a summand has hidden a part of the noise",
        _SEEDS,
        "Self::Zero => [5, 0, 0],",
        "Self::Zero => [4, 0, 0],",
        _STREAMS,
    ),
    Bug(
        "G′ added to G",
        "noise is never below zero",
        _NUMBERS,
        "                } else {\n                    1u64.wrapping_neg()\n                } << digit;",
        "                } else {\n                    1u64\n                } << digit;",
        _EXACT,
    ),
    Bug(
        "all digits of noise weigh the same",
        "the noise is much smaller",
        _NUMBERS,
        "                } << digit;",
        "                } << (digit & 0);",
        _EXACT,
    ),
    Bug(
        "digits of noise compared the wrong way round",
        "a coin is one where it should be zero",
        _CHUNK,
        "            *less ^= mask;\n",
        "            *less ^= !mask;\n",
        _EXACT,
    ),
    Bug(
        "upper places of a digit ignored",
        "less in the lower places is enough",
        _CHUNK,
        "            operands.push([upper, low]);\n",
        "            operands.push([low, low]);\n            let _ = upper;\n",
        _EXACT,
    ),
    Bug(
        "the same random bits at every place of a digit",
        "the coins are much too coarse",
        _CHUNK,
        ".map(|place| self.compared(digits, place, self.random(seeds, place)))",
        ".map(|place| self.compared(digits, place, self.random(seeds, place & 0)))",
        _EXACT,
    ),
    Bug(
        "a member's own component of its part drawn",
        "something is added that nobody has drawn as noise",
        _PARTS,
        "for component in others(self.place).filter(|component| *component != member) {",
        "for component in others(self.place) {",
        _EXACT,
    ),
    Bug(
        "all members' parts hidden by the same streams",
        "two vectors differ by what they should hide",
        _SEEDS,
        "Self::Part { member } => [4, member as u64, 0],",
        "Self::Part { .. } => [4, 0, 0],",
        _STREAMS,
    ),
    Bug(
        "parts of the noise not compared",
        "a member gives two others different parts, and sees what becomes of it",
        _PARTS,
        "(0..MEMBERS).filter(|member| !two.contains(&travels(*member))) {",
        "(0..0).filter(|member| !two.contains(&travels(*member))) {",
        _NOISE,
    ),
    Bug(
        "one part of the noise for all outputs",
        "the difference of two answers has no noise",
        _PARTY,
        "label = pack(str(chunk.output).encode(), str(chunk.first).encode())",
        'label = pack(b"0", str(chunk.first).encode())',
        _EXACT,
    ),
    Bug(
        "one part of the noise for all chunks of an output",
        "the difference of two degrees has no noise",
        _PARTY,
        "label = pack(str(chunk.output).encode(), str(chunk.first).encode())",
        'label = pack(str(chunk.output).encode(), b"0")',
        _PIECES,
    ),
    Bug(
        "all chunks of noise added to the first numbers",
        "the last degrees are opened without noise",
        _PARTY,
        "self._noise[chunk.output].add(chunk.first, numbers)",
        "self._noise[chunk.output].add(chunk.first % 1, numbers)",
        _PIECES,
    ),
    Bug(
        "answers published without waiting for their noise",
        "they are opened bare",
        _PARTY,
        "return self._all_pairs and counted and self._noise_done.issuperset(chunks)",
        "return self._all_pairs and counted and bool(self._noise_done.issuperset(chunks) or True)",
        _EXACT,
    ),
    Bug(
        "the law of the noise is not signed",
        "two members draw different noise under the same confirmation",
        _ROUNDS,
        "fields.append(pack(output.name.encode(), *noise))",
        "fields.append(pack(output.name.encode(), *list(noise)[:1]))",
        _PARAMETERS,
    ),
]

_BOUNDS = [
    Bug(
        "told degrees used although their hash does not match",
        "one member lowers the bound as far as it likes",
        _NUMBERS,
        "        if !bool::from(expected.ct_eq(hash)) {\n            return Err(Fault::Mismatch(sender, hasher));\n        }\n        let mut sums = unpack(",
        "        if sender == hasher && !bool::from(expected.ct_eq(hash)) {\n            return Err(Fault::Mismatch(sender, hasher));\n        }\n        let mut sums = unpack(",
        _BOUND,
    ),
    Bug(
        "a mismatch of told degrees passed over",
        "the largest bound is taken: a cheat can find out what its lie has changed",
        _PARTY,
        '        with self._comparing("tell", "noisy degrees"):\n'
        "            degrees = noisy.learn(self._view, number, came[sender], came[hasher])\n",
        "        try:\n"
        "            degrees = noisy.learn(self._view, number, came[sender], came[hasher])\n"
        "        except ValueError:\n            degrees = np.full(given.nodes, given.nodes)\n",
        _BOUND,
    ),
    Bug(
        "noise of counts begun before the degrees are learnt",
        "with the largest bound, whatever was opened",
        _PARTY,
        "None if isinstance(output.noise, Bounded) else output.noise for output",
        "output.noise.at(output.noise.cap) if isinstance(output.noise, Bounded) else output.noise for output",
        _PHASES,
    ),
    Bug(
        "the bound without its margin at the members",
        "it fails much more often than delta says",
        _PARTY,
        "output.noise.at(output.noise.bound(degrees))",
        "output.noise.at(max(1, output.noise.bound(degrees) - output.noise.margin))",
        _EXACT,
    ),
    Bug(
        "degrees told by any member",
        "the one that is to send nothing sends what it likes",
        _PARTY,
        "        return ours and self._step_from(member) in (1, 2)\n",
        "        return ours\n",
        _REFUSED,
    ),
    Bug(
        "told numbers of any output taken",
        "they wait for ever in a member's memory",
        _PARTY,
        "ours = given.bounded and message.sequence == given.degrees and member is not None",
        "ours = given.bounded and member is not None",
        _REFUSED,
    ),
    Bug(
        "the size of told degrees not checked",
        "a hash where a component is due",
        _PARTY,
        "return self._parameters.nodes * self._parameters.width if sends else 32",
        "return len(message.payload) - 16 if sends else 32",
        _REFUSED,
    ),
]

_ORDER = [
    Bug(
        "opened numbers not compared with their hash",
        "one member chooses the noisy degrees",
        _OPENING,
        "if !bool::from(expected.ct_eq(came[hasher])) {",
        "if !bool::from(expected.ct_eq(came[hasher])) && sender > 1 {",
        f"{_FOLDER}test_hostile.py -k not_confirmed",
    ),
    Bug(
        "a summand of degrees taken",
        "degrees are opened without hashes",
        _COORDINATOR,
        'if (name == "open") != (given.outputs[number].name in LINEAR):',
        "if number < 0:",
        _OPENINGS,
    ),
    Bug(
        "steps that do not exist are counted",
        "the progress of a run is what one member says",
        _COORDINATOR,
        "return 0 if number < given.chunks + given.bands else None",
        "return 0",
        _OPENINGS,
    ),
    Bug(
        "summands that do not add up are rounded",
        "a number that no count can be is published",
        _COORDINATOR,
        "        if centred % factor:\n",
        "        if centred % factor > factor:\n",
        _OPENINGS,
    ),
    Bug(
        "the coordinator goes on after summands that do not add up",
        "another summand may come",
        _HOST,
        "        except MismatchError:\n            self.state = State.ENDED\n            raise\n        del self._opened_parts",
        "        except MismatchError:\n            raise\n        del self._opened_parts",
        _OPENINGS,
    ),
    Bug(
        "inputs of noise taken from silos that are no members",
        "anyone adds to the noise",
        _ROUNDS,
        "if member is None or not isinstance(self.outputs[chunk.output].noise, Parts):",
        "if not isinstance(self.outputs[chunk.output].noise, Parts):",
        _REFUSED,
    ),
    Bug(
        "layers that a chunk does not have are kept",
        "messages that nobody uses fill a member's memory",
        _MEMBER,
        "return message.sequence % self._seating.stride < layers",
        "return layers >= 0",
        _REFUSED,
    ),
    Bug(
        "layers of chunks that have not begun are kept",
        "their size is not known yet: one of any size is taken",
        _MEMBER,
        "        if number not in self._chunks:\n            return False\n",
        "        if number not in self._chunks:\n            return True\n",
        _REFUSED,
    ),
]

_CELLS = "src/silograph/dp/cells.py"
_FOLD = "crates/core/src/graph/fold.rs"
_WEIGHTS = "pytest tests/dp/test_cells.py"
_FOLDED = f"{_FOLDER}test_folded.py"

_FOLDS = [
    Bug(
        "both signs of a cell added",
        "edges of random signs do not cancel, and every closed walk counts",
        _COUNT,
        "let sign = if minus { u64::MAX } else { 1 };",
        "let sign = if minus { 1 } else { 1 };",
        f"{_FOLDED} -k TestCounts",
    ),
    Bug(
        "the buckets of hubs in the loads of groups",
        "weights are for company that no edge between groups has",
        _COUNT,
        "                if groups.contains(&low) {\n",
        "                if low < layout.rows() {\n",
        f"{_FOLDED} -k TestCounts",
    ),
    Bug(
        "cells that begin at an odd bucket",
        "a + bucket is taken for the − bucket of the cell before",
        _FOLD,
        "let mut at = start.saturating_sub(self.cell(low, high).0);",
        "let mut at = 0 * start;",
        "cargo buckets_are_visited_in_their_order",
    ),
    Bug(
        "one of three matrices without weights",
        "the members' summands are of different matrices",
        _COUNT,
        "        for matrix in self.matrices.as_mut()? {\n",
        "        for matrix in self.matrices.as_mut()?.iter_mut().skip(1) {\n",
        f"{_FOLDED} -k TestCounts",
    ),
    Bug(
        "triangles counted before their weights are known",
        "rows that are counted early have other weights, or none",
        _PARTY,
        "return self._all_pairs and self._weighed and self._rows",
        "return self._all_pairs and self._rows",
        f"{_FOLDED} -k TestCounts",
    ),
    Bug(
        "weights that nobody compares",
        "members with different weights open a number that no bound is for",
        _PARTY,
        "        view = self._label if weighted else self._view\n",
        "        view = self._view\n",
        f"{_FOLDED} -k other_weights",
    ),
    Bug(
        "the bound without hubs",
        "an edge between groups closes triangles with every hub",
        _CELLS,
        "(over_groups + sum(h * h for h in hubs))",
        "over_groups",
        f"{_WEIGHTS} -k TestChange",
    ),
    Bug(
        "the bound of exact weights",
        "weights that were rounded up change more than the noise hides",
        _CELLS,
        "            + Fraction((first + second) * sum(others), unit)\n            + len(others)\n        )\n"
        "        found = [(Fraction(first * second, unit) + 1) * ",
        "        )\n        found = [Fraction(first * second, unit) * ",
        f"{_WEIGHTS} -k TestChange",
    ),
    Bug(
        "weights rounded down",
        "all counts are too small by up to three parts of a weight",
        _CELLS,
        "return (self.exact(a) + below) >> np.uint64(_PLACES)",
        "return self.exact(a) >> np.uint64(_PLACES)",
        f"{_WEIGHTS} -k rounding",
    ),
    Bug(
        "a hub's row taken for noise",
        "the intervals of edges miss the truth on a star",
        "src/silograph/methods/sealed/folded.py",
        "max(uneven - value, 0.0)) + loads.edges_more",
        "max(uneven - value, 0.0))",
        f"{_FOLDED} -k one_hub",
    ),
    Bug(
        "the logarithm of noise",
        "noise makes loads uneven, and edges are counted far too high",
        "src/silograph/methods/sealed/folded.py",
        "self._of_ends(calm[self.o])",
        "self._of_ends(np.clip(self.seen[self.o], 0, _FULL * 2 * (self.groups - 1)))",
        f"{_FOLDED} -k mostly_noise",
    ),
]

BUGS = [*_NUMBERS_OF_BITS, *_GROUPS, *_COUNTS, *_DRAWN, *_BOUNDS, *_ORDER, *_FOLDS]
