"""Bugs in what reads bytes from outside: wrong sizes, other errors than the project's own."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_TESTS = "pytest tests/messages/test_decoders.py -k "

BUGS = [
    Bug(
        "decoder: a count of pairs that wraps round",
        "a few bytes pass for the graph of 2^64 − 1 nodes, and memory is taken for it",
        "crates/core/src/graph/bitrows.rs",
        "let pairs = n as u128 * n.saturating_sub(1) as u128 / 2;",
        "let pairs = n.wrapping_mul(n.saturating_sub(1)) as u128 / 2;",
        _TESTS + "TestBindings",
    ),
    Bug(
        "decoder: a sealed silo that is told to authorise",
        "a coordinator's message ends a silo with an error that nobody handles",
        "src/silograph/methods/sealed/party.py",
        '(*CommitteeParty.TAKES, "tell")',
        '(*CommitteeParty.TAKES, "tell", "authorise")',
        _TESTS + "by_itself",
    ),
    Bug(
        "decoder: a coordinator that collects what is no message",
        "a silo's word counts as a message of a round that there is not",
        "src/silograph/methods/sealed/coordinator.py",
        '(*Host.TAKES, "tell", "sum", "done")',
        '(*Host.TAKES, "tell", "sum", "done", "all keys")',
        _TESTS + "by_itself",
    ),
    Bug(
        "decoder: bytes after the last field",
        "one message has many encodings",
        "src/silograph/messages/identity.py",
        "if position != len(content):",
        "if position > len(content):",
        _TESTS + "TestWire",
    ),
    Bug(
        "decoder: owners that are no silos",
        "a coordinator names an owner whom nobody has",
        "src/silograph/methods/featplus/rounds.py",
        "if int(owners.max()) >= m:",
        "if int(owners.max()) > m:",
        _TESTS + "TestShared",
    ),
    Bug(
        "decoder: a release with 1/0 in it",
        "a file ends its reader with an error that nobody handles",
        "src/silograph/estimators/release_file.py",
        "except (ValueError, ZeroDivisionError):",
        "except ValueError:",
        _TESTS + "TestReleaseFile",
    ),
    Bug(
        "release: views below the channel",
        "a file of a graph without noise says that it costs 1",
        "src/silograph/estimators/release_file.py",
        "        if view.epsilon < channel.epsilon:",
        "        if view.claimed and view.epsilon < channel.epsilon - 1e-9:",
        "pytest tests/estimators/test_release.py -k TestLies",
    ),
    Bug(
        "release: colluding silos left out",
        "a file claims the coordinator's loss, and not that of the silos who may join it",
        "src/silograph/estimators/release_file.py",
        "    if worst < loss:",
        "    if worst < channel.epsilon:",
        "pytest tests/estimators/test_release.py -k TestLies",
    ),
    Bug(
        "release: losses below the channel",
        "a file says that silos who collude learn less than anyone does",
        "src/silograph/estimators/release_file.py",
        "        if loss < channel.epsilon:",
        "        if loss < 0:",
        "pytest tests/estimators/test_release.py -k TestLies",
    ),
    Bug(
        "release: losses that fall",
        "a file says that one silo more sees less",
        "src/silograph/estimators/release_file.py",
        "        if t and loss < losses[t - 1]:",
        "        if t and loss < losses[0]:",
        "pytest tests/estimators/test_release.py -k TestLies",
    ),
    Bug(
        "release: a loss that no number is",
        "a number that passes a float's range is read as a loss without a bound",
        "src/silograph/estimators/release_file.py",
        "    return number if math.isfinite(number) and not isinstance(value, bool) else None",
        "    return number if number == number and not isinstance(value, bool) else None",
        "pytest tests/estimators/test_release.py -k TestHostileFile",
    ),
    Bug(
        "release: true for a number",
        "a file of one node, or of a loss of one, where a truth value stands",
        "src/silograph/estimators/release_file.py",
        "isinstance(value, int) and not isinstance(value, bool) and value >= least",
        "isinstance(value, int) and value >= least",
        "pytest tests/estimators/test_release.py -k TestHostileFile",
    ),
]
