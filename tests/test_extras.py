"""Without its extras the package works, and what needs one says which."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from silograph import extras
from silograph.errors import MissingExtraError

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"

#: What a person would do, and what they must be told: who needs what, from which extra.
FEATURES = {
    "Silo.from_networkx(nodes, None)": ("networkx graphs", "networkx", "interop"),
    "Silo.from_igraph(nodes, None)": ("igraph graphs", "igraph", "interop"),
    "Silo.from_pandas(nodes, None)": ("pandas frames", "pandas", "interop"),
    "Silo.from_polars(nodes, None)": ("polars frames", "polars", "interop"),
    "Silo.from_scipy(nodes, None)": ("sparse matrices", "scipy", "interop"),
    "Silo.from_file(nodes, folder / 'edges.parquet')": ("Parquet files", "polars", "interop"),
    "Silo.from_dataset(nodes, folder / 'edges.parquet')": (
        "datasets of Parquet files",
        "pyarrow",
        "interop",
    ),
    "Silo.from_dask(nodes, None)": ("dask frames", "dask", "dask"),
    "silo.to_networkx()": ("networkx graphs", "networkx", "interop"),
    "silo.to_igraph()": ("igraph graphs", "igraph", "interop"),
    "silo.to_pandas()": ("pandas frames", "pandas", "interop"),
    "silo.to_polars()": ("polars frames", "polars", "interop"),
    "silo.to_scipy()": ("sparse matrices", "scipy", "interop"),
    "silo.to_file(folder / 'own.parquet')": ("Parquet files", "pyarrow", "interop"),
    "silograph.result_page(release)": ("pages", "vl_convert", "report"),
    "release.to_networkx()": ("networkx graphs", "networkx", "interop"),
    "release.to_scipy()": ("sparse matrices", "scipy", "interop"),
    "certificates.new_authority(folder / 'certs', datetime.now(UTC))": (
        "certificates",
        "cryptography",
        "deploy",
    ),
    "keys.new_identity(folder / 'sealed', 'a passphrase')": (
        "sealed identity files",
        "cryptography",
        "deploy",
    ),
    "import_module('silograph.nats.silo')": ("deployments", "nats", "deploy"),
    "import_module('silograph.nats.coordinator')": ("deployments", "nats", "deploy"),
    "import_module('silograph.console.app')": ("consoles", "starlette", "console"),
    "BrokerConfig(('ws://localhost:1',), None, websocket=True).connect_options()": (
        "brokers over WebSocket",
        "aiohttp",
        "websocket",
    ),
}

BARE = f"""
import sys
for name in {sorted(name for names in extras.EXTRAS.values() for name in names)}:
    sys.modules[name] = None

import json
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
import silograph
import silograph.cli.app
from silograph import Channel, NodeUniverse, Release, Silo, clustered_power_law
from silograph.errors import MissingExtraError
from silograph.party import certificates, keys
from silograph.party.connection import BrokerConfig

folder = Path(sys.argv[1])
nodes = NodeUniverse.range(3)
silo = Silo.from_edges(nodes, [(0, 1)])
release = Release.draw(clustered_power_law(20, seed=1), Channel.symmetric(1.0), seed=1)
said = {{}}
for code in json.loads(sys.argv[2]):
    try:
        eval(code)
    except MissingExtraError as error:
        said[code] = str(error)
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What every feature says where no extra is installed."""
    folder = tmp_path_factory.mktemp("bare")
    pyarrow.parquet.write_table(pa.table({"u": [0], "v": [1]}), folder / "edges.parquet")
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(folder), json.dumps(list(FEATURES))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} == {"edges.parquet"}, "nothing half-written"
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("feature", FEATURES)
def test_a_missing_extra_is_one_clear_error(said: dict[str, str], feature: str) -> None:
    users, package, extra = FEATURES[feature]
    assert said.get(feature) == (
        f"{users} need {package}, which is not installed: pip install 'silograph[{extra}]'"
    )


def test_a_service_without_its_extra_ends_with_one_line(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['nats'] = None; from silograph.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "study", "propose", "edges", "-c", "x.toml", "--epsilon", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "silograph: deployments need nats, which is not installed: "
        "pip install 'silograph[deploy]'\n"
    )


def test_a_broken_library_is_not_called_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "altair.py").write_text("import a_library_that_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "altair", raising=False)
    with pytest.raises(MissingExtraError, match=r"figures need altair, which cannot be imported"):
        extras.library("altair", "figures")


def test_the_table_of_extras_is_the_projects() -> None:
    """Every module is brought by its extra, and by no other."""
    listed = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(listed) == set(extras.EXTRAS)
    owners = metadata.packages_distributions()
    for extra, modules in extras.EXTRAS.items():
        wanted = {re.split(r"[\[>=<]", line)[0] for line in listed[extra]}
        if extra == "websocket":
            assert listed[extra][0].startswith("nats-py[aiohttp]")
            continue
        assert {owners[module][0].replace("_", "-").lower() for module in modules} == wanted
