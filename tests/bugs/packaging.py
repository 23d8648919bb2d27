"""Bugs in the package's front door and in what it says of missing extras."""

from bugs.bug import Bug

__all__ = ["BUGS"]

_IMPORT = "pytest tests/test_import.py"
_EXTRAS = "pytest tests/test_extras.py"

BUGS = [
    Bug(
        "packaging: everyone waits for everything",
        "importing the package loads all of it",
        "src/silograph/__init__.py",
        "from silograph._core import __version__\n",
        "from silograph._core import __version__\nimport silograph.local.federation\n",
        _IMPORT,
    ),
    Bug(
        "packaging: a name without a home",
        "a public name that type checkers know cannot be imported",
        "src/silograph/__init__.py",
        '    "Ledger": "runtime.ledger",\n',
        "",
        _IMPORT,
    ),
    Bug(
        "packaging: a deployment without its library",
        "a silo's service ends with a traceback where the extra is missing",
        "src/silograph/runtime/nats/__init__.py",
        'library("nats", "deployments")\n',
        "_ = library\n",
        "pytest tests/test_extras.py -k a_service_without_its_extra",
    ),
    Bug(
        "packaging: broken is called absent",
        "who has a library that cannot be loaded is told to install it",
        "src/silograph/extras.py",
        'what = "is not installed" if absent else',
        'what = "is not installed" if error else',
        _EXTRAS,
    ),
]
