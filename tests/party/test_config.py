"""Configuration files: every key known, of one kind, and named where it is wrong."""

from pathlib import Path

import pytest

from silograph.errors import ConfigError, EdgeError
from silograph.graph.universe import NodeUniverse
from silograph.messages.identity import Identity, Member
from silograph.party.config import (
    CoordinatorConfig,
    HelperConfig,
    PartyConfig,
    SiloConfig,
    load_silo,
    read_config,
    read_served,
)
from silograph.party.keys import key_text

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


KEYS = [Identity(bytes([number]) * 32).public for number in range(1, 5)]
NAMES = ("north", "south", "west", "notary")
COMMITTEE = "committee = [\n{}]\n".format(
    "".join(
        f'{{ name = "{name}", key = "{key_text(key)}", organisation = "{name.title()} & Co" }},\n'
        for name, key in zip(NAMES, KEYS, strict=True)
    )
)
HELPER = 'role = "helper"\n' + SILO.partition("[data]")[0].replace('universe = "nodes.txt"\n', "")
HELPER += '[policy]\ncoordinators = ["hub"]\nmethods = ["feat committee"]\n'


def test_a_committee(tmp_path: Path) -> None:
    policy = read(tmp_path).policy
    assert (policy.committee, policy.helpers, policy.coordinator_in_committee) == ((), True, False)
    more = "helpers = false\ncoordinator_in_committee = true\n"
    policy = read(tmp_path, SILO + COMMITTEE + more).policy
    assert policy.committee == tuple(
        Member(name, key, f"{name.title()} & Co") for name, key in zip(NAMES, KEYS, strict=True)
    )
    assert (policy.helpers, policy.coordinator_in_committee) == (False, True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("committee = [", 'committee = "four"\nx = [', "policy.committee must be a list"),
        ("committee = [", 'committee = ["north", ', "committee must be a list of tables"),
        ('name = "south", ', "", r"policy\.committee\[2\]\.name is missing"),
        ('name = "south"', "name = 3", r"committee\[2\]\.name must be a text"),
        ('name = "south"', 'name = "South"', r"\[policy\.committee\[2\]\] 'South' is not a party"),
        ('name = "south"', 'name = "north"', "have a name of its own"),
        ('name = "south"', 'name = "south", role = "silo"', r"committee\[2\]\.role is not a key"),
        ("ed25519:", "ed448:", r"committee\[1\]\] 'ed448:.* is not a public key"),
        (key_text(KEYS[2]), key_text(KEYS[3]), "have a key of its own"),
        ("South & Co", "North & Co", "have an organisation of its own"),
        ("South & Co", "", "is not an organisation"),
        ("notary", "south", "have a name of its own"),
    ],
)
def test_what_is_wrong_with_a_committee(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in COMMITTEE
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, SILO + COMMITTEE.replace(old, new, 1))


def test_three_are_no_committee(tmp_path: Path) -> None:
    lines = COMMITTEE.splitlines(keepends=True)
    with pytest.raises(ConfigError, match="committee has 3 members; it must have four"):
        read(tmp_path, SILO + "".join([*lines[:2], *lines[3:]]))


def test_a_helper(tmp_path: Path) -> None:
    path = tmp_path / "notary.toml"
    path.write_text(HELPER)
    found = HelperConfig.read(path)
    assert (found.role, found.universe, found.policy.methods) == (
        "helper", None, ("feat committee",),
    )  # fmt: skip
    assert read_served(path) == read_config(path) == found
    path.write_text(HELPER.replace("state =", 'universe = "nodes.txt"\nstate ='))
    assert HelperConfig.read(path).universe == tmp_path / "nodes.txt"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HELPER.replace('role = "helper"\n', ""), "universe is missing"),
        (HELPER.replace('role = "helper"', 'role = "helpr"'), "role is 'helpr'"),
        (HELPER.replace('role = "helper"', "role = 3"), "role must be a text"),
        (HELPER.partition("[policy]")[0], "policy is missing"),
        (HELPER + '[data]\nedges = "e.csv"\n', "data: a helper has no data and no ledger"),
        (HELPER + '[ledger]\npath = "l"\n', "ledger: a helper has no data and no ledger"),
        ('role = "coordinator"\n' + SILO, "role is 'coordinator', and this must be .* a silo"),
    ],
)
def test_what_is_wrong_with_a_helper(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "notary.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_served(path)


def test_every_file_may_state_its_role(tmp_path: Path) -> None:
    path = tmp_path / "party.toml"
    plain = SILO.partition("[data]")[0]
    kinds: list[tuple[str, str, type[PartyConfig]]] = [
        ("silo", SILO, SiloConfig), ("coordinator", plain, CoordinatorConfig),
        ("helper", HELPER.partition("\n")[2], HelperConfig),
    ]  # fmt: skip
    for role, text, kind in kinds:
        path.write_text(f'role = "{role}"\n{text}')
        assert type(read_config(path)) is kind
    path.write_text(HELPER)
    with pytest.raises(ConfigError, match=r"role is 'helper', and this must be .* a coordinator"):
        CoordinatorConfig.read(path)
    path.write_text(f'role = "boss"\n{plain}')
    with pytest.raises(ConfigError, match="role must be silo, helper or coordinator"):
        read_config(path)


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


def test_an_open_universe(tmp_path: Path) -> None:
    found = read(tmp_path, SILO.replace('"nodes.txt"', '"open"'))
    universe = found.nodes()
    assert universe == NodeUniverse.open()
    (tmp_path / "edges.csv").write_text("from,to\nAda,bob\nbob,eve\n")
    loaded = load_silo(found, NodeUniverse.open(case="lower"))
    assert (loaded.silo.nodes.ids, loaded.outside) == (("ada", "bob", "eve"), 0)
    (tmp_path / "edges.csv").write_text("from,to\nAda,bob\nbob,\n")
    with pytest.raises(EdgeError, match=r"edges.csv:3: an empty id"):
        load_silo(found, NodeUniverse.open())
    path = tmp_path / "notary.toml"
    path.write_text(HELPER.replace("state =", 'universe = "open"\nstate ='))
    assert HelperConfig.read(path).nodes() == NodeUniverse.open()


def test_files_of_universes(tmp_path: Path) -> None:
    NodeUniverse(["a", "b"]).save(tmp_path / "open")
    NodeUniverse.open(strip=True).save(tmp_path / "nodes.txt")
    assert read(tmp_path, SILO.replace('"nodes.txt"', '"./open"')).nodes() == NodeUniverse(
        ["a", "b"]
    )
    assert read(tmp_path).nodes() == NodeUniverse.open(strip=True)
    path = tmp_path / "notary.toml"
    path.write_text(HELPER)
    assert HelperConfig.read(path).nodes() is None
