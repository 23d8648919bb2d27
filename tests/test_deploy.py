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


# --- alert rules ----------------------------------------------------------------------------------

ALERTS = DEPLOY / "alerts.yml"
_SELECTOR = re.compile(r"\b(silograph_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
#: What the labels of the rules may be: the values that the program gives them.
_VALUES = {
    "outcome": {"done", "refused", "aborted", "expired"},
    "state": {"open", "done", "aborted"},
    "phase": {"asked", "accepted", "refused", "aborted"},
}


def rules() -> list[dict[str, Any]]:
    content = pytest.importorskip("yaml").safe_load(ALERTS.read_text())
    assert set(content) == {"groups"}
    return [rule for group in content["groups"] for rule in group["rules"]]


def wrong_in(expression: str) -> list[str]:
    """What an expression names that the program does not have."""
    found = []
    for name, matchers in _SELECTOR.findall(expression):
        if name not in NAMES:
            found.append(name)
            continue
        labels = NAMES[name][1:]
        for label, value in _MATCHER.findall(matchers):
            if label not in labels or not set(value.split("|")) <= _VALUES[label]:
                found.append(f"{name}: {label}={value}")
    bare = _SELECTOR.sub("", expression)
    for label in re.findall(r"\b(?:on|by|ignoring)\s*\(([^)]*)\)", bare):
        named_by = [NAMES[n][1:] for n, _ in _SELECTOR.findall(expression) if n in NAMES]
        found += [x for x in label.split(",") if not all(x.strip() in n for n in named_by)]
    return found


def test_alerts_name_metrics_that_exist() -> None:
    assert len(rules()) >= 10
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert wrong_in(rule["expr"]) == [], rule["alert"]
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert {"summary", "action"} == set(rule["annotations"])
        text = " ".join(rule["annotations"].values())
        named_labels = set(re.findall(r"\$labels\.(\w+)", text))
        metrics = {name for name, _ in _SELECTOR.findall(rule["expr"])}
        assert metrics
        assert all(named_labels <= set(NAMES[name][1:]) for name in metrics), rule["alert"]


def test_alerts_use_commands_that_exist() -> None:
    known: Any = typer.main.get_command(app)
    found = 0
    for words in re.findall(r"'silograph ([a-z -]+)", ALERTS.read_text()):
        command = known
        for word in words.split():
            if not hasattr(command, "commands"):
                break
            assert word in command.commands, words
            command = command.commands[word]
            found += 1
    assert found > 8


def test_every_alert_of_the_page_has_a_rule() -> None:
    """The page says when to alert; the rules must do so."""
    page = (DEPLOY / "monitoring.md").read_text()
    asked = {
        name
        for row in re.findall(r"^\| (`silograph_.*) \|[^|]*\| *([^| ][^|]*) \|$", page, flags=re.M)
        for name in re.findall(r"silograph_\w+", row[0])
    }
    ruled = {name for rule in rules() for name, _ in _SELECTOR.findall(rule["expr"])}
    assert len(asked) >= 8
    assert asked <= ruled


@pytest.mark.parametrize(
    "expression",
    [
        "silograph_broker_conected == 0",
        'silograph_studies_total{result="aborted"} > 0',
        'silograph_studies_total{outcome="abortet"} > 0',
        "silograph_epsilon_spent / on (run) silograph_epsilon_limit",
    ],
)
def test_wrong_names_are_found(expression: str) -> None:
    assert wrong_in(expression)


def test_prometheus_reads_the_rules() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is absent")
    subprocess.run(["promtool", "check", "rules", str(ALERTS)], check=True)


# --- containers -----------------------------------------------------------------------------------

COMPOSE = DEPLOY / "compose"
_INSTRUCTIONS = {
    "FROM", "RUN", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD", "ENV", "ARG", "EXPOSE", "VOLUME",
}  # fmt: skip


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, with their arguments in one line."""
    text = (COMPOSE / "Containerfile").read_text()
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.M))
    return [
        (word, rest)
        for word, _, rest in (line.partition(" ") for line in joined.splitlines())
        if word
    ]


def test_the_containerfile() -> None:
    found = instructions()
    assert {word for word, _ in found} <= _INSTRUCTIONS
    stages: list[str] = []
    for word, rest in found:
        parts = rest.split()
        if word == "FROM":
            assert re.fullmatch(r"[\w./-]+:[\w.-]+", parts[0]), f"{parts[0]}: no version"
            stages.append(parts[2] if len(parts) == 3 else "")
        elif word == "COPY":
            source = next((p for p in parts if p.startswith("--from=")), None)
            if source:
                assert source.removeprefix("--from=") in stages[:-1]
            else:
                root = DEPLOY.parent
                assert all((root / part).exists() for part in parts[:-1]), rest
    user = [rest for word, rest in found if word == "USER"]
    assert user == ["10001"], "the last stage does not run as root"
    assert ("ENTRYPOINT", '["silograph"]') in found
    installed = next(rest for word, rest in found if word == "RUN" and "deploy.txt" in rest)
    assert "--require-hashes" in installed


def test_the_composition() -> None:
    content = pytest.importorskip("yaml").safe_load((COMPOSE / "compose.yaml").read_text())
    assert set(content) == {"name", "x-party", "services", "networks"}
    assert content["networks"]["federation"]["internal"] is True
    known: Any = typer.main.get_command(app)
    assert {"broker", "hub"} < set(content["services"])
    for name, service in content["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["user"] == "10001", name
        assert set(service["networks"]) <= set(content["networks"]), name
        assert set(service.get("depends_on", ())) <= set(content["services"]), name
        assert "ports" not in service, f"{name} would be reached from outside"
        for volume in service["volumes"]:
            assert volume.startswith("${PWD}/"), volume
        if name == "broker":
            assert re.fullmatch(r"docker\.io/library/nats:\d+\.\d+", service["image"])
            continue
        build = service["build"]
        folder = (COMPOSE / build["context"]).resolve()
        assert (folder / build["dockerfile"]).samefile(COMPOSE / "Containerfile")
        if "command" in service:
            group, command, *options = service["command"]
            taken = known.commands[group].commands[command]
            opts = {opt for parameter in taken.params for opt in parameter.opts}
            assert {option for option in options if option.startswith("--")} <= opts


def _engine() -> str | None:
    """A container engine that answers."""
    for name in ("podman", "docker"):
        if shutil.which(name) is None:
            continue
        done = subprocess.run([name, "info"], capture_output=True, check=False, timeout=30)
        if done.returncode == 0 and b"Cannot connect" not in done.stderr + done.stdout:
            return name
    return None


@pytest.mark.whole
def test_the_image_is_built_where_an_engine_is() -> None:
    engine = _engine()
    if engine is None:
        pytest.skip("no container engine answers; the files were parsed")
    root, file = DEPLOY.parent, str(COMPOSE / "Containerfile")
    subprocess.run([engine, "build", "-q", "-f", file, "-t", "silograph", str(root)], check=True)
    done = subprocess.run(
        [engine, "run", "--rm", "silograph", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "deploy" in done.stdout


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
