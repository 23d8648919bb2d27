"""Long families of cases: some run in ``make test``, all of them in ``make exact``."""

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], *kept: int) -> list[Any]:
    """The cases; all but those at these places are marked ``whole``."""
    listed = list(cases)
    ordinary = {range(len(listed))[place] for place in kept}
    return [case if place in ordinary else _whole(case) for place, case in enumerate(listed)]


def _whole(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.whole)
