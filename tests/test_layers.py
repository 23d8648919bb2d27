"""The two import rules of ARCHITECTURE.md, and that its list of modules is the tree."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "silograph"

LAYERS = [
    {"errors", "_core"},
    {"extras", "whole_files"},
    {"graph", "dp"},
    {"estimators", "messages"},
    {"methods"},
    {"ledger"},
    {"local"},
    {"party"},
    {"nats"},
    {"audit", "page"},
    {"console"},
    {"cli"},
]
#: Modules with randomness of their own making would be the end of every guarantee.
FORBIDDEN = {"random", "pickle", "secrets"}
#: What a method's noise may see of the package.
NOISE_SEES = {"errors", "dp", "_core"}
#: Modules of a method that answer questions, which its machines do not see.
ANSWERS = {"answer", "counts", "stars", "walks", "folded", "method"}


def modules() -> list[Path]:
    doors = {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
    return sorted(set(PACKAGE.rglob("*.py")) - doors)


def name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def level(part: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def imports(path: Path) -> list[str]:
    """Everything that a module imports, wherever it does: ``module.name`` for each name."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert all(alias.name != "*" for alias in node.names), f"{path}: star import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def ours(path: Path) -> list[str]:
    """What a module imports of this package, without the package's name."""
    found = [target for target in imports(path) if target.split(".")[0] == "silograph"]
    assert "silograph" not in found or name(path).startswith("cli"), f"{path}: the whole package"
    return [target.removeprefix("silograph.") for target in found]


@pytest.mark.parametrize("path", modules(), ids=name)
def test_packages_import_downwards(path: Path) -> None:
    own = name(path).split(".")[0]
    for target in imports(path):
        assert target.split(".")[0] not in FORBIDDEN, f"{name(path)} imports {target}"
    for target in ours(path):
        part = target.split(".")[0]
        if part not in {"__version__", own}:
            assert level(part) < level(own), f"{name(path)} must not import silograph.{part}"


@pytest.mark.parametrize(
    "path", [p for p in modules() if p.parent.parent.name == "methods"], ids=name
)
def test_what_the_parts_of_a_method_see(path: Path) -> None:
    kind = path.stem
    for target in ours(path):
        first, *rest = target.split(".")
        if kind == "noise":
            assert first in NOISE_SEES, f"{name(path)} must see the cost alone, not {target}"
        elif kind not in ANSWERS and first == "methods":
            seen = set(rest) & ANSWERS
            assert not seen, f"{name(path)} is a machine, and must not see {target}"


def test_no_module_is_imported_in_a_circle() -> None:
    """Not even inside functions: an import is hidden there to save time, never to break a cycle."""
    known = {name(path): path for path in modules() if path.name != "__init__.py"}

    def reached(module: str) -> set[str]:
        targets = ours(known[module])
        return {t for target in targets for t in (target, target.rpartition(".")[0]) if t in known}

    graph = {module: reached(module) for module in known}
    waiting = set(known)
    while free := {module for module in waiting if not graph[module] & waiting - {module}}:
        waiting -= free
    assert not waiting


@pytest.mark.parametrize("path", modules(), ids=name)
def test_no_predictable_randomness(path: Path) -> None:
    assert not re.search(r"\b(np|numpy)\.random\b", path.read_text())


def test_architecture_lists_every_module() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| (\(top\)|`[\w.]+`) \| ([`\w ]+) \|", text, flags=re.M)
    listed = [
        module if package == "(top)" else f"{package.strip('`')}.{module}"
        for package, names in rows
        for module in re.findall(r"`(\w+)`", names)
    ]
    assert sorted(listed) == sorted(name(p) for p in modules() if p.name != "__init__.py")
    order = [level(module.split(".")[0]) for module in listed]
    assert order == sorted(order)


def test_unsafe_is_in_one_place() -> None:
    for path in (ROOT / "crates").rglob("*.rs"):
        if path.name != "simd.rs":
            assert "allow(unsafe_code)" not in path.read_text(), path
