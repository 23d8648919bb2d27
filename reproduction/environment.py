"""What results were made by: the software that they are a function of, and the machine."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np

from silograph.graph.bits import simd_levels

__all__ = ["machine", "software"]


def software() -> dict[str, str]:
    """The versions that drawn numbers may depend on."""
    return {
        "silograph": version("silograph"),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def machine() -> dict[str, str | int]:
    """What measured times depend on, and nothing that names the machine or its owner."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "simd": simd_levels()[-1],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
