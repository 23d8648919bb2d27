"""The examples in ``deploy/``: commands that exist, files that their programs take."""

import re
import shutil
import subprocess
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer.main

from silograph.cli.app import app
from silograph.nats.broker import users_text
from silograph.nats.health import NAMES
from silograph.party import certificates
from tests.nats.brokers import SERVER, make_trial

DEPLOY = Path(__file__).parents[1] / "deploy"
TEXTS = sorted(p for p in DEPLOY.rglob("*") if p.suffix in (".md", ".service"))
COMMAND = re.compile(
    r"(?:^|[\s`/])silograph (?!silograph)((?:[a-z]+ )?[a-z]+)((?: [^\n`#|&;]*)?)", flags=re.M
)

#: Groups that are checked where they are registered.
ENGINE = {"silo", "study"}


def named(path: Path) -> str:
    return str(path.relative_to(DEPLOY))


def commands(text: str) -> list[tuple[list[str], list[str]]]:
    """The commands in a text: their words, and their options."""
    places = (r"^ *[$#] (.*)$", r"`([^`\n]*)`", r"^ExecStart=(.*)$")
    shown = "\n".join(line for place in places for line in re.findall(place, text, flags=re.M))
    return [
        (words.split(), re.findall(r"--[a-z-]+", rest)) for words, rest in COMMAND.findall(shown)
    ]


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_commands_exist(path: Path) -> None:
    known: Any = typer.main.get_command(app)
    for words, options in commands(path.read_text()):
        if words[0] in ENGINE - set(known.commands):
            continue
        command = known
        for word in words:
            if not hasattr(command, "commands"):
                break  # an argument
            assert word in command.commands, f"{path.name}: silograph {' '.join(words)}"
            command = command.commands[word]
        taken = {name for parameter in command.params for name in parameter.opts}
        assert set(options) <= taken, f"{path.name}: silograph {' '.join(words)} {options}"


def test_the_pages_have_commands() -> None:
    """Or the test above would say nothing."""
    found = [c for path in TEXTS for c in commands(path.read_text())]
    assert len(found) > 40
    assert (["roster", "rotate"], ["--reason"]) in found


def test_links() -> None:
    for path in DEPLOY.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{named(path)}: {target}"


def test_every_metric_is_explained() -> None:
    text = (DEPLOY / "monitoring.md").read_text()
    assert set(re.findall(r"`(silograph_\w+)", text)) == set(NAMES)


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.toml")), ids=named)
def test_configurations(path: Path) -> None:
    assert tomllib.loads(path.read_text())["version"] == 1
    config = pytest.importorskip("silograph.party.config")
    assert config.read_config(path).role == path.stem


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("nats-cluster/*.conf")), ids=named)
def test_the_servers_of_a_cluster(path: Path, tmp_path: Path) -> None:
    trial = make_trial(tmp_path, "north", "south")
    place = tmp_path / "certs"
    name = f"{path.stem}.example.org"
    certificates.issue(place, "server", datetime.now(UTC), hosts=[name])
    text = path.read_text().replace("/etc/silograph-broker", str(place))
    (tmp_path / "server.conf").write_text(
        text.replace("/var/lib/silograph-broker", str(tmp_path / "streams"))
    )
    (tmp_path / "users.conf").write_text(users_text(trial.roster))
    done = subprocess.run(
        [SERVER, "-t", "-c", str(tmp_path / "server.conf")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f'"tls://{name}:6222"' not in text, "no route to itself"
    assert text.count(":6222") == 3


@pytest.mark.parametrize(
    "path", sorted([*DEPLOY.glob("systemd/*.service"), *DEPLOY.glob("systemd/*.timer")]), ids=named
)
def test_units(path: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is absent")
    for unit in path.parent.iterdir():
        text = re.sub("/usr/local/bin/(silograph|nats-server)", "/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / path.name)],
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if path.name.partition("@")[0] in line]
    assert complaints == []


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("systemd/*.service")), ids=named)
def test_units_are_hardened(path: Path) -> None:
    text = path.read_text()
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
        "UMask=0077",
        "LimitCORE=0",
    ):
        assert f"\n{line}\n" in text
