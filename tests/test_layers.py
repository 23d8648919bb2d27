"""The import order of DESIGN: errors → graph | privacy | crypto → queries | protocol → … → cli."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "silograph"

LAYERS = [
    {"errors", "_core"},
    {"extras"},
    {"graph", "privacy", "crypto"},
    {"queries", "protocol"},
    {"methods"},
    {"runtime"},
    {"audit", "experiments"},
    {"report"},
    {"cli"},
]
#: Modules with randomness of their own making would be the end of every guarantee.
FORBIDDEN = {"random", "pickle", "secrets"}


def modules() -> list[Path]:
    doors = {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
    return sorted(set(PACKAGE.rglob("*.py")) - doors)


def name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def level(part: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def imports(path: Path, *, at_start: bool = False) -> list[str]:
    """What a module imports: anywhere, or only when it is itself imported."""
    tree, found = ast.parse(path.read_text()), []
    for node in tree.body if at_start else ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert all(alias.name != "*" for alias in node.names), f"{path}: star import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", modules(), ids=name)
def test_imports_point_down(path: Path) -> None:
    own = name(path).split(".")[0]
    for target in imports(path):
        top, _, rest = target.partition(".")
        assert top not in FORBIDDEN, f"{name(path)} imports {top}"
        if top != "silograph" or not rest:
            assert top != "silograph" or own == "cli", f"{name(path)} imports the whole package"
            continue
        part = rest.split(".")[0]
        if part in {"__version__", own}:
            continue
        assert level(part) < level(own), f"{name(path)} must not import silograph.{part}"


@pytest.mark.parametrize("path", modules(), ids=name)
def test_no_predictable_randomness(path: Path) -> None:
    if name(path).startswith("experiments"):
        return
    assert not re.search(r"\b(np|numpy)\.random\b", path.read_text())


def test_architecture_lists_every_module_in_import_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = re.findall(r"^\| `silograph[./]([\w./]+)` \|", text, flags=re.M)
    actual = [name(path) for path in modules() if path.name != "__init__.py"]
    assert sorted(listed) == sorted(actual)
    order = [level(module.split(".")[0]) for module in listed]
    assert order == sorted(order)
    position = {module: i for i, module in enumerate(listed)}
    for path in modules():
        if name(path) not in position:
            continue
        for target in imports(path, at_start=True):
            module = target.removeprefix("silograph.")
            for known in (module, module.rpartition(".")[0]):
                if target.startswith("silograph.") and known in position and known != name(path):
                    assert position[known] < position[name(path)], f"{known} before {name(path)}"


def test_architecture_lists_every_rust_file() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = re.findall(r"^\| `(crates/[\w./]+\.rs)` \|", text, flags=re.M)
    actual = [str(p.relative_to(ROOT)) for p in (ROOT / "crates").rglob("*.rs")]
    actual = [p for p in actual if not p.endswith(("mod.rs", "lib.rs"))]
    assert sorted(listed) == sorted(actual)


def test_unsafe_is_in_one_place() -> None:
    for path in (ROOT / "crates").rglob("*.rs"):
        if path.name != "simd.rs":
            assert "allow(unsafe_code)" not in path.read_text(), path
