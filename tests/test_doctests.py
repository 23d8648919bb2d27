"""Every example in a docstring runs."""

import doctest
import importlib
import pkgutil

import pytest

import silograph

NAMES = ["silograph", *(m.name for m in pkgutil.walk_packages(silograph.__path__, "silograph."))]


@pytest.mark.parametrize("name", [n for n in NAMES if not n.endswith("._core")])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
