"""Bugs in what is timed, and in what is said about it."""

from bugs.bug import Bug

__all__ = ["BUGS"]

_CURVES = "src/silograph/experiments/curves.py"
_TIMES = "src/silograph/experiments/times.py"
_STUDIES = "src/silograph/experiments/whole_studies.py"
_PEERS = "src/silograph/experiments/peer_libraries.py"
_TABLE = "pytest tests/experiments/test_curves.py"
_FIGURE = "pytest tests/experiments/test_times.py"

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
        "np.bitwise_or.reduce(bits)",
        "np.bitwise_and.reduce(bits)",
        _FIGURE + " -k printed_baseline",
    ),
    Bug(
        "times: ours for the printed answer",
        "feat+ as printed is timed with the mended local answers",
        _STUDIES,
        "asked.subject, _printed_answer)",
        "asked.subject)",
        _FIGURE + " -k printed_featplus",
    ),
]
