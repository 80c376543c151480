"""Where and with what a benchmark was run, for the head of its table."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import walklearn as wl


def machine() -> Iterator[str]:
    """The machine, the software, the commit, and how busy it all is."""
    yield f"CPU: {_cpu_model()}, {os.cpu_count()} cores; caches {_caches()}"
    yield (
        f"Python {platform.python_version()}, NumPy {version('numpy')}, numba {version('numba')}, "
        f"{_first_line('gcc', '--version')}, {platform.system()} {platform.release()}"
    )
    folder = str(Path(wl.__file__).parent)  # of what is measured, wherever that is
    commit = _first_line("git", "-C", folder, "rev-parse", "--short", "HEAD") or "none"
    changed = " with changes" if _first_line("git", "-C", folder, "status", "--short", ".") else ""
    files = sorted(Path(folder, "simulation", "kernels").rglob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    yield (
        f"{time.strftime('%Y-%m-%d')}, walklearn {wl.__version__}, commit {commit}{changed}, "
        f"kernels {digest}"
    )
    yield f"{os.getloadavg()[0]:.1f} processes at work on average over the last minute"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    family = f"family {facts.get('cpu family')} model {facts.get('model')}"
    return f"{facts.get('model name', 'unknown')} ({family})"


def _caches() -> str:
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found) or "unknown"


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return next(iter(done.stdout.splitlines()), "")
