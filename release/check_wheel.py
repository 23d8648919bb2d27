"""What `make wheel` made, looked at as those who install it will meet it.

Usage: python release/check_wheel.py DIST PYTHON...

With every Python that is named, the wheel is installed, without extras, into an environment of its
own; what came along is listed, and the command is run. The sdist needs no check that it builds:
the wheel was built from it.
"""

import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]

#: Megabytes of everything that comes along, but for numpy.
MOST = 30


def main() -> None:
    folder, pythons = Path(sys.argv[1]), sys.argv[2:]
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_names(wheel, sdist)
    check_wheel(wheel)
    check_sdist(sdist)
    for python in pythons:
        with tempfile.TemporaryDirectory() as place:
            check_installed(wheel, python, Path(place))
    print(f"{wheel.name}: fine\n{sdist.name}: fine")


def demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise SystemExit(f"make wheel: {complaint}")


def check_names(wheel: Path, sdist: Path) -> None:
    name, version, python, abi, system = wheel.stem.split("-")
    demand((name, version) == ("silograph", VERSION), f"{wheel.name} is not version {VERSION}")
    demand((python, abi) == ("cp311", "abi3"), f"{wheel.name} is not for every Python from 3.11 on")
    linux = sys.platform == "linux"
    demand(not linux or "manylinux" in system, f"{wheel.name} is for this kind of Linux only")
    demand(sdist.name == f"silograph-{VERSION}.tar.gz", f"{sdist.name} is not version {VERSION}")


def sources() -> set[str]:
    """The package's files under version control: code, types, data."""
    done = subprocess.run(
        ["git", "ls-files", "src/silograph"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {line.removeprefix("src/") for line in done.stdout.splitlines()}


def check_wheel(wheel: Path) -> None:
    about = f"silograph-{VERSION}.dist-info"
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if not name.endswith("/")}
        metadata = Parser().parsestr(opened.read(f"{about}/METADATA").decode())
    inside = {name for name in names if not name.startswith(about)}
    inside.remove("silograph/_core.abi3.so")
    demand(
        inside == sources(),
        f"the wheel and the repository differ: {sorted(inside ^ sources())}",
    )
    for needed in (*(f"licenses/{name}" for name in PROJECT["license-files"]), "entry_points.txt"):
        demand(f"{about}/{needed}" in names, f"the wheel has no {needed}")
    demand(any("/sboms/" in name for name in names), "the wheel lists no crates (sboms/)")
    lines = metadata.get_all("Requires-Dist", [])
    always = {line for line in lines if "extra ==" not in line}
    demand(always == set(PROJECT["dependencies"]), f"the wheel needs {sorted(always)}")


def check_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    always = ("Cargo.lock", ".cargo/config.toml", "README.md", "pyproject.toml")
    for needed in (*always, *PROJECT["license-files"]):
        demand(needed in names, f"the sdist has no {needed}")
    missing = {f"src/{name}" for name in sources()} - names
    demand(not missing, f"the sdist lacks {sorted(missing)}")


def check_installed(wheel: Path, python: str, place: Path) -> None:
    run(python, "-m", "venv", "env", cwd=place)
    programs = place / "env" / "bin"
    before = installed(programs)
    run(programs / "python", "-m", "pip", "install", "--quiet", str(wheel.resolve()), cwd=place)
    came = {name: size for name, size in installed(programs).items() if name not in before}
    listed = ", ".join(f"{name} {size:.1f} MB" for name, size in sorted(came.items()))
    print(f"{python}: pip install silograph brings {listed}")
    extras = {
        re.split(r"[\[>=<]", line)[0]
        for lines in PROJECT["optional-dependencies"].values()
        for line in lines
    }
    demand(not extras & set(came), f"without extras came {sorted(extras & set(came))}")
    heavy = sum(size for name, size in came.items() if name != "numpy")
    demand(heavy < MOST, f"what comes along has {heavy:.0f} MB, numpy not counted")
    said = run(programs / "silograph", "--version", cwd=place)
    demand(said.startswith(f"silograph {VERSION} "), f"silograph --version says {said!r}")
    demand("triangles" in run(programs / "silograph", "demo", cwd=place), "the demo shows nothing")
    about = run(
        programs / "python", "-c", "from silograph import _core; print(_core.build()[2])", cwd=place
    )
    demand(
        platform.machine() != "x86_64" or about.strip() == "True",
        "the curve's AVX-512 code is not compiled in",
    )


def installed(programs: Path) -> dict[str, float]:
    """Every distribution, and its megabytes."""
    code = (
        "from importlib.metadata import distributions\n"
        "for d in distributions():\n"
        "    size = sum(f.locate().stat().st_size for f in d.files if f.locate().is_file())\n"
        "    print(d.name, size / 1e6)"
    )
    lines = run(programs / "python", "-c", code, cwd=programs).splitlines()
    return {line.split()[0].lower(): float(line.split()[1]) for line in lines}


def run(program: Path | str, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [program, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    demand(done.returncode == 0, f"{program} {' '.join(arguments)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
