"""What is handed out: one version, locks that fit the project, the terms of what is linked in."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import silograph

ROOT = Path(__file__).parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
EXTRAS = PROJECT["optional-dependencies"]

#: For each lock what it must hold.
LOCKS: dict[str, list[str]] = {
    "dev": [*PROJECT["dependencies"], *chain(*EXTRAS.values()), *GROUPS["dev"]],
    "deploy": [
        *PROJECT["dependencies"],
        *chain(*(EXTRAS[name] for name in ("deploy", "websocket", "console"))),
    ],
    "release": GROUPS["release"],
}
LOCKED = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\\n]+))? \\\n"
    r"(?:    --hash=sha256:[0-9a-f]{64} \\\n)*    --hash=sha256:[0-9a-f]{64}\n(?:    #.*\n)*",
    flags=re.M,
)


def lock(name: str) -> dict[str, Version]:
    """The versions of a lock for this Python; every line of it must be one pin with hashes."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    rest = LOCKED.sub("", text)
    assert rest == "", f"requirements/{name}.txt: {rest[:200]}"
    return {
        found["name"]: Version(found["version"])
        for found in LOCKED.finditer(text)
        if found["marker"] is None or Marker(found["marker"].strip()).evaluate()
    }


def test_there_is_one_version() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert "version" not in PROJECT
    assert silograph.__version__ == cargo["workspace"]["package"]["version"]
    assert metadata.version("silograph") == silograph.__version__


@pytest.mark.parametrize("name", LOCKS)
def test_locks_fit_the_project(name: str) -> None:
    locked = lock(name)
    for line in LOCKS[name]:
        wanted = Requirement(line)
        version = locked.get(canonicalize_name(wanted.name))
        assert version is not None, f"{line}: not in requirements/{name}.txt; make lock"
        assert version in wanted.specifier, f"{line}: {version} is locked; make lock"


def test_a_deployment_runs_what_was_tested() -> None:
    tested = lock("dev")
    assert {name: tested.get(name) for name in lock("deploy")} == lock("deploy")


def test_the_wheel_brings_little() -> None:
    assert {Requirement(line).name for line in PROJECT["dependencies"]} == {
        "numpy",
        "rich",
        "typer",
    }


def test_the_terms_of_others_go_along() -> None:
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
    if shutil.which("cargo") is None:
        pytest.skip("cargo is absent")
    done = subprocess.run(
        [sys.executable, ROOT / "release" / "licences.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_types_go_along() -> None:
    assert (Path(silograph.__file__).parent / "py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]
