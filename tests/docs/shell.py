"""One shell for a page: what its reader would type, in one terminal of 80 columns."""

import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.docs.fork_server import CLIENT

__all__ = ["Server", "Shell"]

_SECONDS = 120
_TYPING = 0.5

ROOT = Path(__file__).parents[2]


class Server:
    """The process that stands behind the command ``silograph`` on the pages."""

    def __init__(self, folder: Path) -> None:
        """``folder`` gets the command, to be put on a path."""
        self.bin = folder
        name = f"silograph-pages-{secrets.token_hex(16)}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.docs.fork_server", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        command = self.bin / "silograph"
        command.write_text(CLIENT.format(python=sys.executable, name=name))
        command.chmod(0o755)

    def close(self) -> None:
        """End it and all that it runs."""
        self._process.communicate()


class Shell:
    """Bash, kept from command to command; variables and background jobs stay."""

    def __init__(self, server: Server, folder: Path, scratch: Path) -> None:
        self._scratch = scratch
        reader, writer = os.pipe()
        own = Path(sys.executable).parent
        self._status = os.fdopen(reader, "rb", buffering=0)
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            pass_fds=[writer],
            start_new_session=True,
            env={
                "PATH": f"{server.bin}:{own}:{os.environ['PATH']}",
                "HOME": str(scratch),
                "PYTHONPATH": os.pathsep.join(
                    (str(ROOT), str(ROOT / "src"))
                ),  # for the reproduction
                "COLUMNS": "80",
                "LANG": "C.UTF-8",
                "TERM": "dumb",
                "TZ": "UTC",
            },
        )
        os.close(writer)
        self._writer = writer
        self._last = 0
        self._number = 0

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of one command, and all that it printed."""
        self._number += 1
        script = self._scratch / f"command-{self._number}.sh"
        output = self._scratch / f"command-{self._number}.out"
        script.write_text(f"{command}\n")
        assert self._bash.stdin is not None
        # Sourced, so that variables stay; in the status that the last command left.
        line = f"(exit {self._last}); source {script} </dev/null >{output} 2>&1"
        self._bash.stdin.write(f"{line}; echo $? >&{self._writer}\n".encode())
        self._bash.stdin.flush()
        self._last = int(self._read(command))
        if command.endswith("&") or command.startswith("kill"):
            time.sleep(_TYPING)  # people are slower than programs that start or end
        return self._last, output.read_text()

    def _read(self, command: str) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(self._status, selectors.EVENT_READ)
            if not selector.select(_SECONDS):
                raise TimeoutError(f"still running after {_SECONDS} s: {command}")
        answer = self._status.readline()
        assert answer, f"the shell ended: {command}"
        return answer

    def close(self) -> None:
        """End the shell and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGTERM)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.communicate()
        self._status.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
