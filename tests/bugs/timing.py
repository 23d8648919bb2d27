"""Bugs in what is timed, in what is said about it, and in what time tells of edges."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_CURVES = "reproduction/elliptic_curves.py"
_TIMES = "reproduction/times.py"
_STUDIES = "reproduction/times.py"
_PEERS = "reproduction/peer_libraries.py"
_BITS = "src/silograph/graph/bits.py"
_ROWS = "crates/core/src/graph/bitrows.rs"
_FEATPLUS = "src/silograph/methods/featplus/machines.py"
_CHUNK = "pytest tests/graph/test_pair_bits.py"
_TABLE = "pytest tests/reproduction/test_elliptic_curves.py"
_FIGURE = "pytest tests/reproduction/test_times.py"

BUGS = [
    Bug(
        "curves: scaled without a word",
        "a time that was computed from fewer elements passes for a measured one",
        _CURVES,
        '"scaled": measured < elements',
        '"scaled": measured > elements',
        _TABLE,
    ),
    Bug(
        "curves: the budget of one block",
        "a block is begun that will not fit",
        _CURVES,
        "if now + (now - wall) * following / count > deadline:",
        "if now > deadline:",
        _TABLE + " -k TestBudget",
    ),
    Bug(
        "curves: a wrong union is timed",
        "what a library opened is not compared with the truth",
        _CURVES,
        "if opened != flags(held):",
        "if len(opened) != count:",
        _TABLE + " -k wrong",
    ),
    Bug(
        "curves: wall time",
        "other programs count, and threads do not",
        _CURVES,
        "seconds += time.process_time() - start",
        "seconds += time.perf_counter() - wall",
        _TABLE + " -k TestBudget",
    ),
    Bug(
        "curves: kept cells are copied",
        "as the paper prints it: half of the work is not done",
        _PEERS,
        "        zero, given = self._cell, self._given\n        self.fresh(0)\n",
        "        zero, given = self._cell, self._given\n        return cell\n",
        _TABLE + " -k anew",
    ),
    Bug(
        "curves: one key for all silos",
        "every silo's share is the first silo's",
        _PEERS,
        "self._multiply(group, point, None, point, self._secrets[silo], context)",
        "self._multiply(group, point, None, point, self._secrets[0], context)",
        _TABLE + " -k TestPeers",
    ),
    Bug(
        "times: the fixed part scaled",
        "keys and tables are paid for once a pair",
        _TIMES,
        "return fixed + (seconds - fixed) * pairs / measured",
        "return seconds * pairs / measured",
        _FIGURE + " -k TestScaling",
    ),
    Bug(
        "times: counting left out",
        "feat+ takes as long as feat",
        _TIMES,
        "[Spent(u.wall + c.wall, u.work + c.work) for u, c in both]",
        "[u for u, c in both]",
        _FIGURE + " -k TestScaling",
    ),
    Bug(
        "times: some pairs pass for all",
        "a scaled time is not labelled",
        _TIMES,
        "        measured, spent = _elgamal(",
        "        _, spent = _elgamal(",
        _FIGURE + " -k TestRows",
    ),
    Bug(
        "times: counting on the part",
        "what follows the union is timed on the first nodes alone",
        _TIMES,
        "_COUNTS[method](asked, release)",
        "_COUNTS[method](part, release)",
        _FIGURE + " -k TestScaling",
    ),
    Bug(
        "times: the reports' intersection",
        "the printed baseline counts what all silos reported",
        _STUDIES,
        "collusion=0, raw=True, progress=False",
        "collusion=0, raw=False, progress=False",
        _FIGURE + " -k printed_baseline",
    ),
    Bug(
        "times: ours for the printed answer",
        "feat+ as printed is timed with the mended local answers",
        _STUDIES,
        "            _printed_answer,\n",
        "",
        _FIGURE + " -k printed_featplus",
    ),
    Bug(
        "bits: a chunk edge by edge",
        "the time between two chunks tells how many edges are in the second",
        _BITS,
        '    return words[start // 64 : -(-end // 64)].astype("<u8", copy=False).tobytes()',
        "    words = words[start // 64 : -(-end // 64)]\n"
        "    made = bytearray(8 * len(words))\n"
        "    for at in np.flatnonzero(words):\n"
        '        made[8 * at : 8 * at + 8] = int(words[at]).to_bytes(8, "little")\n'
        "    return bytes(made)",
        _CHUNK + " -k takes_one_time",
    ),
    Bug(
        "bits: the list of edges is kept",
        "whoever makes a chunk has a list at hand that is as long as there are edges",
        _BITS,
        "        self._words, self._file = _room(triangle_bytes(n))",
        "        self._edges = silo.pairs\n        self._words, self._file = _room(triangle_bytes(n))",
        _CHUNK + " tests/methods/test_sessions.py -k one_size or as_much",
    ),
    Bug(
        "bits: memory that was only promised",
        "pages without an edge are read in another time than those that were written",
        _ROWS,
        "    triangle.fill(0);\n",
        "",
        _CHUNK + " -k every_word",
    ),
    Bug(
        "feat+: degrees counted when they are due",
        "the time between the last chunk and the degrees tells how many edges there are",
        _FEATPLUS,
        "self._degrees.numbers(self._counted)",
        "self._degrees.numbers(self._silo.degrees().tolist())",
        "pytest tests/methods/test_sessions.py -k degrees_are_counted",
    ),
]
