"""Bugs in the reproduction: draws that are not what they are called, runs that lose or mix work."""

from bugs.bug import Bug

__all__ = ["BUGS"]

_COINS = "reproduction/draws.py"
_REPORTS = "reproduction/draws.py"
_WALKS = "src/silograph/methods/baseline/answer.py"
_HIDDEN = "reproduction/draws.py"
_DRAWS = "reproduction/draws.py"
_TASKS = "reproduction/tasks.py"
_JOURNAL = "reproduction/runner.py"
_RUNNER = "reproduction/runner.py"
_RESULTS = "reproduction/results.py"

_LAWS = "pytest tests/reproduction/test_draws.py"
_ROWS = "pytest tests/reproduction/test_runner.py -k TestTasks"
_STATE = "pytest tests/reproduction/test_runner.py -k TestContinuing"

BUGS = [
    Bug(
        "printed: one coin for all holders",
        "a pair with many holders is drawn as if it had one",
        _COINS,
        "p**holders * (1 - p) ** (silos - holders)",
        "(p if holders else 1 - p) * (1 - p) ** (silos - 1)",
        _LAWS + " -k TestOwnCoins",
    ),
    Bug(
        "printed: zeros of one silo",
        "pairs that nobody holds are tossed once, not by every silo",
        _COINS,
        "limbs(shows_one(p, 0, silos))",
        "limbs(shows_one(p, 0, 1))",
        _LAWS + " -k TestOwnCoins",
    ),
    Bug(
        "baseline: reports with the same noise",
        "every silo draws from one stream",
        _REPORTS,
        'f"report of silo {place}"',
        'f"report of silo {place > 0}"',
        _LAWS + " -k TestAllReports",
    ),
    Bug(
        "baseline: pairs of a pair with itself",
        "2-stars count an edge twice as a star of its own",
        _REPORTS,
        "degree**2 - sum(c * s for c, s in zip(row, squares, strict=True))",
        "degree**2 - sum(c * 0 for c, s in zip(row, squares, strict=True))",
        _LAWS + " -k TestAllReports",
    ),
    Bug(
        "baseline: weights of too many digits",
        "sums of products are rounded, and depend on the machine",
        _REPORTS,
        "(53 - (self.nodes - 1).bit_length()) // 2",
        "(57 - (self.nodes - 1).bit_length()) // 2",
        _LAWS + " -k rounded_weights",
    ),
    Bug(
        "baseline: blocks of triples counted too often",
        "triples with two nodes in one block have three orders, not six",
        _WALKS,
        "terms.append(3 * float(",
        "terms.append(6 * float(",
        _LAWS + " -k blocks_of_triples",
    ),
    Bug(
        "sealed: one share too few",
        "the last silo adds no noise",
        _HIDDEN,
        "(1, 1) if alone else (noise.shares, noise.silos)",
        "(1, 1) if alone else (noise.shares, noise.shares)",
        _LAWS + " -k law_of_their_noise",
    ),
    Bug(
        "feat: collusion for nothing",
        "the mended release is drawn as if nobody colluded",
        _DRAWS,
        'union_channel("clear", asked.epsilon, asked.dealt.silos, asked.collusion)',
        'union_channel("clear", asked.epsilon, asked.dealt.silos, 0)',
        _LAWS + " -k TestMended",
    ),
    Bug(
        "reproduce: repetitions of one draw",
        "all repetitions have the same seed, and no spread",
        _TASKS,
        'f"{begin}/{number}"',
        "begin",
        _ROWS,
    ),
    Bug(
        "reproduce: errors relative to the answer",
        "a wild answer has a relative error of 1 at most",
        _TASKS,
        "abs(value - truth) / truth for",
        "abs(value - truth) / abs(value) for",
        _ROWS,
    ),
    Bug(
        "reproduce: a torn line stays",
        "what a killed process left is in front of the next line",
        _JOURNAL,
        "self._file.truncate(whole)\n            self._file.seek(whole)",
        "self._file.seek(0, os.SEEK_END)",
        _STATE + " and torn",
    ),
    Bug(
        "reproduce: journal without checksum",
        "a line that was changed is believed",
        _JOURNAL,
        'entry.get("check") != _check(key, outcome)',
        'entry.get("check") is None',
        _STATE + " and changed_line",
    ),
    Bug(
        "reproduce: a journal of other parameters",
        "half of the tasks of one run, half of another",
        _JOURNAL,
        "if head != self._head:",
        'if head["experiment"] != self._head["experiment"]:',
        _STATE + " and changed_line",
    ),
    Bug(
        "reproduce: results of other parameters kept",
        "what is finished is taken for what is asked",
        _RUNNER,
        "found.quick != definition.quick or dict(found.parameters) != dict(definition.parameters)",
        "found.kind != definition.kind",
        _STATE + " and results_of_other",
    ),
    Bug(
        "reproduce: fresh over foreign files",
        "somebody's own file of the same name is deleted",
        _RUNNER,
        "if not content.startswith(begin) and not begin.startswith(content):",
        "if not content:",
        _STATE + " and foreign",
    ),
    Bug(
        "reproduce: two runs in one folder",
        "nobody is kept out",
        _JOURNAL,
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        _STATE + " and two_runs",
    ),
    Bug(
        "results: a combination twice",
        "a row that was left out as well",
        _RESULTS,
        'for row in (*found["rows"], *found["left_out"])',
        'for row in found["rows"]',
        "pytest tests/reproduction/test_results.py",
    ),
]
