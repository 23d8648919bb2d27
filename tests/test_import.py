"""What `import silograph` costs, and what the package's front door says."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import silograph

#: Seconds, beyond an interpreter that imports nothing. Ours is a twentieth of it.
MOST = 0.3

#: What nobody should wait for who wants one name of the package.
HEAVY = {
    "aiohttp",
    "altair",
    "asyncio",
    "cryptography",
    "email",
    "http",
    "igraph",
    "nats",
    "networkx",
    "pandas",
    "polars",
    "pyarrow",
    "rich.console",
    "scipy",
    "ssl",
    "typer",
    "urllib.request",
    "vl_convert",
}


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def cpu_seconds(code: str) -> float:
    """The least of five runs, in time of the processor: other programs do not count."""
    clocked = "import time; start = time.process_time()\n%s\nprint(time.process_time() - start)"
    runs = [
        subprocess.run(
            [sys.executable, "-c", clocked % code], capture_output=True, text=True, check=True
        )
        for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def test_an_import_is_quick() -> None:
    assert cpu_seconds("import silograph") < MOST


def test_an_import_loads_only_itself() -> None:
    found = loaded_by("import silograph")
    ours = {name for name in found if name.startswith("silograph")}
    assert ours == {"silograph", "silograph._core", "silograph.errors"}
    assert not found & (HEAVY | {"numpy", "sqlite3"})


def test_the_whole_interface_loads_nothing_heavy() -> None:
    found = loaded_by("import silograph\nfor name in silograph.__all__: getattr(silograph, name)")
    assert {"numpy", "silograph.local.federation"} <= found
    assert not found & HEAVY


def test_every_name_has_a_home_and_the_type_checker_knows_it() -> None:
    homes = {name: f"silograph.{home}" for name, home in silograph._HOMES.items()}
    assert set(homes) | {"__version__", "errors"} == set(silograph.__all__)
    assert dir(silograph) == sorted(silograph.__all__)
    tree = ast.parse(Path(silograph.__file__).read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == homes


def test_a_name_that_is_not_there() -> None:
    assert not hasattr(silograph, "Federations")
    assert silograph.Federation is silograph.__getattr__("Federation")
