"""The picture in README is of a real answer."""

import importlib.util
import sys
from types import ModuleType

from tests.docs.readers import ROOT


def _picture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["picture"] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


def test_it_shows_the_run_of_its_seed() -> None:
    """Drawn again, it is the same picture; README shows it before any table."""
    picture = _picture()
    assert picture.PICTURE.read_text() == picture.drawn(picture.seen())
    before_tables = (ROOT / "README.md").read_text().split("\n|")[0]
    assert "docs/_static/rings.svg" in before_tables
