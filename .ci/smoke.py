"""What an installed walklearn must do, tried from an empty directory, far from the sources.

python .ci/smoke.py [report]: with `report` also a page of results, which needs an extra.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path

import walklearn as wl

SOURCES = Path(__file__).resolve().parent.parent / "src" / "walklearn"


def run(*arguments: str, directory: str) -> str:
    """What the installed command prints."""
    command = Path(sysconfig.get_path("scripts")) / "walklearn"
    done = subprocess.run(
        [command, *arguments], cwd=directory, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def files_below(root: Path) -> set[Path]:
    """All files, but for what Python compiles them to."""
    found = {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
    return {path for path in found if "__pycache__" not in path.parts}


installed = Path(wl.__file__).parent
assert installed != SOURCES, f"{installed} is no installation: it is the sources themselves"
missing = files_below(SOURCES) - files_below(installed)
assert not missing, f"not installed: {sorted(map(str, missing))}"

with tempfile.TemporaryDirectory() as directory:
    told = run("--version", directory=directory)
    assert wl.__version__ == version("walklearn")
    assert wl.__version__ in told, told
    run("demo", "--steps", "200", "--replicates", "2", "--out", "demo", directory=directory)
    assert (Path(directory) / "demo" / "comparison.png").stat().st_size > 10_000
    if "report" in sys.argv:
        run("reproduce", "fig1a", "--quick", "--out", "results", directory=directory)
        assert "<html" in (Path(directory) / "results" / "report.html").read_text(encoding="utf-8")
print(f"walklearn {wl.__version__} installed and tried with Python {sys.version.split()[0]}")
