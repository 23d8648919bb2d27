"""A deployment whose consoles are open in a browser: real broker, services and processes."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph.console.access import People
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.party import certificates
from silograph.party.keys import load_identity
from silograph.party.opened import open_store
from tests.console.world import deployment
from tests.nats.world import serving
from tests.support.local_deployment import HUB, LocalDeployment
from tests.support.ports import free_port

#: The party whose console is on TLS; the other is on plain HTTP, which only loopback may have.
SECURE = "silo-1"


class Consoles:
    """Three silos, of which the first asks people; a console for it and for the coordinator."""

    def __init__(self, folder: Path, passphrase: str | None = None) -> None:
        self.made: LocalDeployment = deployment(folder, passphrase=passphrase)
        self.ports = {"silo-1": free_port(), HUB: free_port()}
        now = datetime.now(UTC)
        certificates.new_authority(folder / "tls", now)
        made = certificates.issue(folder / "tls", "console", now, hosts=("127.0.0.1",))
        for name, port in self.ports.items():
            file = self.made.folder / f"{name}.toml"
            text = f'\n[console]\nlisten = "127.0.0.1:{port}"\n'
            if name == SECURE:
                text += f'cert = "{made.path}"\nkey = "{made.path.with_suffix(".key")}"\n'
            file.write_text(file.read_text() + text)
        for name in ("silo-2", "silo-3"):
            file = self.made.silo_file(name)
            file.write_text(file.read_text().replace('accept = "ask"', 'accept = "auto"'))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stop = threading.Event()
        self._services = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        """The services of all silos, in a thread of this process: they start faster so."""
        async with serving(self.made):
            await asyncio.to_thread(self._stop.wait)

    def start(self) -> None:
        self.made.broker.start()
        for name in self.ports:
            self.console(name)
        self._services.start()
        for name in self.ports:
            wait(lambda name=name: self._answers(name), f"the console of {name}", 120)

    def console(self, name: str) -> None:
        """Start a console as a process of its own."""
        command = [sys.executable, "-m", "silograph", "console", "--config"]
        with (self.made.folder / f"console-{name}.out").open("ab") as out:
            self._processes[f"console {name}"] = subprocess.Popen(
                [*command, str(self.made.folder / f"{name}.toml")], stdout=out, stderr=out,
                env=dict(os.environ),
            )  # fmt: skip

    def _answers(self, name: str) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.ports[name]), 0.2).close()
            return True
        return False

    def kill_console(self, name: str) -> None:
        process = self._processes.pop(f"console {name}")
        process.kill()
        process.wait()

    def stop(self) -> None:
        self._stop.set()
        if self._services.is_alive():
            self._services.join()
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.made.broker.stop()

    def address(self, name: str, path: str = "/") -> str:
        scheme = "https" if name == SECURE else "http"
        return f"{scheme}://127.0.0.1:{self.ports[name]}{path}"

    def token(self, name: str, person: str) -> str:
        config = self.made.coordinator() if name == HUB else self.made.silo(name)
        people = People(config.state / "console")
        return people.invite(person, self.made.folder / f"{person}.person.key")

    def enter(self, page: Any, name: str, person: str) -> None:
        """Sign in, by keyboard."""
        token = self.token(name, person)
        page.goto(self.address(name))
        page.locator("#token:focus").wait_for()  # a slow page takes no keys before that
        page.keyboard.type(token)
        page.keyboard.press("Enter")
        page.wait_for_url(self.address(name))

    def propose(self, question: Question) -> str:
        """A study that nobody carries yet; returns its run."""
        service = CoordinatorService(self.made.coordinator())
        try:
            key = load_identity(self.made.folder / "anna.person.key")
            return service.propose(question, 3600.0, key).study.run
        finally:
            service.close()

    def runs(self, name: str) -> dict[str, str]:
        """The state of every run at a party."""
        store = open_store(self.made.coordinator() if name == HUB else self.made.silo(name))
        try:
            return {row.run: row.state for row in store.runs()}
        finally:
            store.close()


def wait(ready: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    limit = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < limit, what
        time.sleep(0.05)


@contextmanager
def consoles(folder: Path, passphrase: str | None = None) -> Iterator[Consoles]:
    made = Consoles(folder, passphrase)
    try:
        made.start()
        yield made
    finally:
        made.stop()
