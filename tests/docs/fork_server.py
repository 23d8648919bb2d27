"""Runs ``silograph`` as often as pages ask for it, without loading it each time.

The command ``silograph`` on the pages' path is :data:`CLIENT`: it hands its arguments, folder,
environment and open files to the server, which forks. So each command is a process of its own with
the shell's real arguments and redirections, and costs some milliseconds instead of half a second.
A signal to the client goes to its command, and a client that is killed takes it along.
"""

import array
import contextlib
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import sys
import traceback
import types
from typing import Any

from silograph import cli

__all__ = ["CLIENT", "serve"]

#: What commands would load, each for itself.
LOADED = (
    "silograph.cli.app",
    "reproduction.page",
    "silograph.page.result",
    "silograph.party.certificates",
    "silograph.nats.coordinator",
    "silograph.nats.silo",
)

#: The text of the command; its first line and the server's name are filled in.
CLIENT = """#!{python} -IS
import array, json, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect("\\0{name}")
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
files = array.array("i", [0, 1, 2])
line.sendmsg([len(asked).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
line.sendall(asked)
for sign in (signal.SIGTERM, signal.SIGINT):
    signal.signal(sign, lambda number, _: line.sendall(bytes([number])))
sys.exit(int(line.recv(16) or b"1"))
"""


def serve(name: str) -> None:
    """Serve until the standard input ends, on an address that is no file."""
    for module in LOADED:
        importlib.import_module(module)
    with contextlib.redirect_stderr(io.StringIO()):  # what parsing loads, it loads when it parses
        cli.main(["universe", "show", ""])
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(f"\0{name}")
        listener.listen()
        wake, woken = socket.socketpair()
        for end in (wake, woken):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno())
        children: dict[int, socket.socket] = {}
        for what in (listener, woken, sys.stdin):
            selector.register(what, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    for pid in children:
                        _signal(pid, signal.SIGKILL)
                    return
                if key.fileobj is woken:
                    woken.recv(4096)
                    _report(children, selector)
                elif key.fileobj is listener:
                    _accept(listener, children, selector)
                else:
                    _pass_on(key.fileobj, children, selector)


def _pass_on(client: Any, children: dict[int, socket.socket], selector: Any) -> None:
    """A signal to the command; where the client is gone, it was killed."""
    sent = client.recv(1)
    if not sent:
        selector.unregister(client)
    for pid in [pid for pid, known in children.items() if known is client]:
        _signal(pid, sent[0] if sent else signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _accept(listener: socket.socket, children: dict[int, Any], selector: Any) -> None:
    client, _ = listener.accept()
    size, ancillary, _, _ = client.recvmsg(4, socket.CMSG_SPACE(12))
    files = array.array("i")
    for _, _, data in ancillary:
        files.frombytes(data)
    asked = b""
    while len(asked) < int.from_bytes(size, "big"):
        asked += client.recv(1 << 16)
    pid = os.fork()
    if pid == 0:
        listener.close()
        client.close()
        _become(asked, files)
    for file in files:
        os.close(file)
    children[pid] = client
    selector.register(client, selectors.EVENT_READ)


def _become(asked: bytes, files: "array.array[int]") -> None:
    """The command itself, in the child."""
    code: object = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for place, file in enumerate(files):
            os.dup2(file, place)
        # Streams of their own: whether one is a terminal is asked when it is opened.
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(place, mode, 1, encoding="utf-8") for place, mode in enumerate("rww")
        )
        arguments, folder, environment = json.loads(asked)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["silograph", *arguments]
        # Processes that the command starts must not load this module.
        sys.modules["__main__"] = types.ModuleType("__main__")
        code = cli.main()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
            code = 1
    except BaseException:  # what a bare program would print
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(int(code or 0))


def _report(children: dict[int, socket.socket], selector: Any) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        client = children.pop(pid)
        with contextlib.suppress(KeyError, ValueError):
            selector.unregister(client)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
            client.sendall(str(code if code >= 0 else 128 - code).encode())
        client.close()


if __name__ == "__main__":
    serve(sys.argv[1])
