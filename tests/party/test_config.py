"""Configuration files: every key known, of one kind, and named where it is wrong."""

from pathlib import Path

import pytest

from silograph.errors import ConfigError
from silograph.party.config import CoordinatorConfig, SiloConfig

SILO = """\
version = 1
name = "north"
identity = "north.key"
roster = "roster.toml"
universe = "nodes.txt"
state = "state"

[broker]
urls = ["tls://broker.example:4222"]
ca = "ca.pem"
cert = "north.pem"
key = "/etc/north.key"

[data]
edges = "edges.csv"
lineage = "claims"
columns = ["from", "to"]

[ledger]
path = "north.ledger"
epsilon = 10

[policy]
coordinators = ["hub"]
epsilon = 2
accept = "auto"
"""


def read(tmp_path: Path, text: str = SILO) -> SiloConfig:
    (tmp_path / "silo.toml").write_text(text)
    return SiloConfig.read(tmp_path / "silo.toml")


def test_a_silo(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.name == "north"
    assert found.identity == tmp_path / "north.key"
    assert found.broker.tls is not None
    assert found.broker.tls.key == Path("/etc/north.key")
    assert found.data.columns == ("from", "to")
    assert (found.ledger.epsilon, found.ledger.delta, found.ledger.collusion) == (10.0, 0.0, 1)
    assert found.policy.epsilon == 2.0
    assert found.policy.accept == "auto"
    assert found.policy.least_silos == 3


def test_a_coordinator(tmp_path: Path) -> None:
    text = SILO.partition("[data]")[0]
    (tmp_path / "hub.toml").write_text(text)
    assert CoordinatorConfig.read(tmp_path / "hub.toml").name == "north"
    with pytest.raises(ConfigError, match=r"silo\.toml: data is missing"):
        read(tmp_path, text)


def test_metrics(tmp_path: Path) -> None:
    found = read(tmp_path).metrics
    assert (found.file, found.port) == (tmp_path / "state" / "metrics.prom", None)
    found = read(tmp_path, SILO + "[metrics]\nport = 9464\n").metrics
    assert (found.file, found.port) == (tmp_path / "state" / "metrics.prom", 9464)
    text = SILO.partition("[data]")[0] + '[metrics]\nfile = "/run/hub.prom"\n'
    (tmp_path / "hub.toml").write_text(text)
    found = CoordinatorConfig.read(tmp_path / "hub.toml").metrics
    assert (found.file, found.port) == (Path("/run/hub.prom"), None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "version 2"),
        ("version = 1", "", "version is missing"),
        ('name = "north"', "", "name is missing"),
        ('name = "north"', "name = 3", "name must be a text"),
        ('name = "north"', 'name = "north"\nnmae = "x"', "nmae is not a key"),
        ("epsilon = 10", 'epsilon = "ten"', "ledger.epsilon must be a number"),
        ("epsilon = 10", "epsilon = true", "ledger.epsilon must be a number"),
        ("epsilon = 10", "epsilon = 10\ncolusion = 1", "ledger.colusion is not a key"),
        ('coordinators = ["hub"]', "", "policy.coordinators is missing"),
        ('coordinators = ["hub"]', "coordinators = [1]", "must be a list of texts"),
        ('accept = "auto"', 'accept = "yes"', r"\[policy\] accept must be"),
        ('accept = "auto"', "least_silo = 3", "policy.least_silo is not a key"),
        ("tls://", "nats://", r"\[broker\]"),
        ('ca = "ca.pem"', "", "broker.ca is missing"),
        ("[broker]", "[broker", "not TOML"),
        ("[data]", "[metrics]\nport = 0\n[data]", "metrics.port must be a number from 1"),
        ("[data]", "[metrics]\nport = 65536\n[data]", "metrics.port must be a number from 1"),
        ("[data]", '[metrics]\nport = "9464"\n[data]', "metrics.port must be a whole number"),
        ("[data]", '[metrics]\nhost = "::"\n[data]', "metrics.host is not a key"),
        ("[data]", "[metrics]\nfile = 1\n[data]", "metrics.file must be a text"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SILO
    with pytest.raises(ConfigError, match=message) as caught:
        read(tmp_path, SILO.replace(old, new, 1))
    assert "silo.toml" in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        SiloConfig.read(tmp_path / "absent.toml")
