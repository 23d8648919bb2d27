"""Planted bugs in the command line: exit codes, what is written, what is spent, what is said."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_EXITS = "pytest tests/cli/test_exits.py"
_BAD = "pytest tests/cli/test_bad_input.py"
_RUNS = "pytest tests/cli/test_local_runs.py"

BUGS = [
    Bug(
        "commands: a refused budget is wrong use",
        "a script cannot tell a spent budget from a slip of the pen, and tries again",
        "src/silograph/cli/exits.py",
        "    (BudgetError, REFUSED),\n",
        "",
        _EXITS,
    ),
    Bug(
        "commands: a dishonest peer is wrong use",
        "an attack looks like a typing error",
        "src/silograph/cli/exits.py",
        "    (ProtocolError, MISBEHAVED),\n",
        "",
        _EXITS,
    ),
    Bug(
        "commands: a deadline is wrong use",
        "a run whose time was over looks like a typing error",
        "src/silograph/cli/exits.py",
        "    (DeadlineError, ABORTED),\n",
        "",
        _EXITS,
    ),
    Bug(
        "commands: terminals obey errors",
        "a file's name can write anything on the operator's screen",
        "src/silograph/cli/exits.py",
        'return "".join(c if c.isprintable() else "�" for c in line)',
        "return line",
        _EXITS,
    ),
    Bug(
        "commands: an interrupt keeps the cost to itself",
        "whoever presses Ctrl-C does not learn that the budget is spent",
        "src/silograph/cli/local_run.py",
        "        except KeyboardInterrupt:\n",
        "        except FloatingPointError:\n",
        _BAD + " -k interrupted",
    ),
    Bug(
        "commands: a lost release keeps the cost to itself",
        "a disk fills up after the run, and nobody says that it is paid for",
        "src/silograph/cli/local_run.py",
        "        except (SilographError, OSError) as error:\n",
        "        except FloatingPointError as error:\n",
        _BAD + " -k disk",
    ),
    Bug(
        "commands: spend first, look for room after",
        "on a full disk the budget is spent and the release is lost",
        "src/silograph/cli/output.py",
        "os.posix_fallocate(trial.fileno(), 0, size)",
        "pass",
        _BAD + " -k disk",
    ),
    Bug(
        "commands: outputs over inputs",
        "a release takes the place of the edges that it was made from",
        "src/silograph/cli/output.py",
        "if path.exists() and given.exists() and path.samefile(given):",
        "if path == given.name:",
        _BAD,
    ),
    Bug(
        "commands: outputs over what was paid for",
        "a release that was paid for is written over without a word",
        "src/silograph/cli/output.py",
        "if path.exists() and not force:",
        "if path.exists() and force:",
        _RUNS,
    ),
    Bug(
        "commands: half a split",
        "a split that fails leaves a folder that looks like one",
        "src/silograph/cli/data.py",
        "partial = Path(beside) / place.name\n",
        "partial = place\n",
        "pytest tests/cli/test_local_runs.py -k split",
    ),
    Bug(
        "commands: half a file stays",
        "a file that could not be written whole is left in its place",
        "src/silograph/whole_files.py",
        "partial = Path(beside) / target.name\n",
        "partial = target\n",
        "pytest tests/graph/test_convert.py",
    ),
    Bug(
        "commands: an epsilon that protects nobody",
        "a slip of the pen publishes the bare truth",
        "src/silograph/dp/loss.py",
        "if value > LARGEST_EPSILON:",
        "if value == LARGEST_EPSILON:",
        _BAD + " -k epsilon",
    ),
    Bug(
        "commands: nothing is said of a missing ledger",
        "runs without a ledger look like any other",
        "src/silograph/cli/output.py",
        "                note(str(message))\n",
        "                pass\n",
        _RUNS,
    ),
    Bug(
        "commands: infinity in JSON",
        "programs that read JSON stop at a loss without a bound",
        "src/silograph/cli/output.py",
        "return value if math.isfinite(value) else None",
        "return value",
        _RUNS,
    ),
    Bug(
        "commands: pages are tried after the run",
        "a page that cannot be made is found out when the budget is spent",
        "src/silograph/cli/count.py",
        "        ready()  # before anything is spent\n",
        "        pass\n",
        _RUNS,
    ),
    Bug(
        "commands: a list that was tampered with",
        "a saved node list whose name ends in .csv is not checked against its digest",
        "src/silograph/graph/node_list.py",
        "if _is_own(text):  # whatever its name ends in",
        "if delimiter is None and _is_own(text):",
        "pytest tests/graph/test_convert.py",
    ),
]  # fmt: skip
