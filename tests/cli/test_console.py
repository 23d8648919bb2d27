"""``silograph console``: letting people in, and what it says when it cannot serve."""

import json
import socket
from pathlib import Path

import pytest

from silograph.console.access import People
from silograph.errors import ArgumentError, DeploymentError, KeyFileError
from tests.cli.test_operations import fails, ok
from tests.console.world import deployment
from tests.support.local_deployment import LocalDeployment


@pytest.fixture
def made(tmp_path: Path) -> LocalDeployment:
    return deployment(tmp_path)


def test_a_token_is_printed_once_and_ends(made: LocalDeployment) -> None:
    config, key = made.silo_file("silo-1"), made.folder / "anna.person.key"
    said = json.loads(ok("console", "token", "anna", "-c", config, "--key", key, "--json"))
    people = People(made.silo("silo-1").state / "console")
    (person,) = people.everyone()
    assert (person.name, person.key) == ("anna", str(key))
    begun = people.exchange(said["token"])
    assert begun is not None
    assert "have ended" in ok("console", "token", "anna", "-c", config, "--revoke")
    assert people.of_session(begun[1]) is None
    fails(ArgumentError, "console", "token", "anna", "-c", config, "--revoke", match="no token")


def test_a_key_that_is_none(made: LocalDeployment) -> None:
    config = made.silo_file("silo-1")
    fails(KeyFileError, "console", "token", "anna", "-c", config, "--key", config, match="others")


def test_where_it_cannot_listen(made: LocalDeployment) -> None:
    fails(ArgumentError, "console", "--config", "x.toml", "token", "anna", "-c", "y.toml",
          match="comes after")  # fmt: skip
    config = made.silo_file("silo-1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(config.read_text() + f'[console]\nlisten = "127.0.0.1:{port}"\n')
        fails(DeploymentError, "console", "-c", config, match="cannot listen on 127.0.0.1:")
