"""Ports of the loopback for tests that run beside each other."""

import itertools
import os
import socket

__all__ = ["free_port"]

#: Each worker of a test run has ports of its own, below those that systems give to connections; one
#: that is given is not given again soon. Two runs at the same time begin at different ones.
_FIRST, _EACH = 20_000, 1_200
_WORKER = int("".join(filter(str.isdigit, os.environ.get("PYTEST_XDIST_WORKER", ""))) or 0) % 10
_TURNS = itertools.count(os.getppid() * 37)


def free_port() -> int:
    """A port that nobody uses, and that no other test will be given for a while."""
    for turn in itertools.islice(_TURNS, _EACH):
        port = _FIRST + _EACH * _WORKER + turn % _EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError("no port of the loopback is free")
