"""Notebooks as pages: run from top to bottom while the pages are built, shown with their outputs.

In the tree they are kept without outputs, so that they change only when somebody changes them.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from myst_parser.sphinx_ import Parser
from nbclient import NotebookClient

LONGEST_SECONDS = 300  # for one cell; each takes a few, on an idle machine


class NotebookParser(Parser):  # type: ignore[misc]
    """Runs a notebook and parses it, with its outputs, as Markdown."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Put the page into the document."""
        notebook = nbformat.reads(inputstring, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(
                notebook,
                km=_kernel(folder),
                timeout=LONGEST_SECONDS,
                startup_timeout=LONGEST_SECONDS,
                resources={"metadata": {"path": folder}},
            ).execute(cleanup_kc=True)
        super().parse("\n\n".join(_parts(notebook, Path(document["source"]).name)), document)


def _kernel(folder: str) -> AsyncKernelManager:
    """A kernel that is spoken to over files of this folder, and listens on no port."""
    return AsyncKernelManager(
        kernel_name="python3", transport="ipc", connection_file=f"{folder}/kernel.json"
    )


def _parts(notebook: Any, name: str) -> Iterator[str]:
    title, *cells = notebook.cells
    yield title.source
    yield f"{{download}}`Download this notebook <{name}>`"
    for cell in cells:
        if cell.cell_type == "markdown":
            yield cell.source
        else:
            yield f"```python\n{cell.source}\n```"
            yield from _outputs(cell.outputs)


def _outputs(outputs: list[Any]) -> Iterator[str]:
    """What was printed, in one piece however many it came in, and what was drawn."""
    for picture, several in groupby(outputs, key=lambda each: "image/png" in each.get("data", {})):
        if picture:
            for output in several:
                data = "".join(output["data"]["image/png"].split())
                base64.b64decode(data, validate=True)  # nothing but a picture goes into the page
                yield f'<img alt="What the code above draws" src="data:image/png;base64,{data}">'
        else:
            text = "".join(each.get("text") or each["data"]["text/plain"] for each in several)
            yield f"```text\n{text.rstrip()}\n```"


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"version": "1", "parallel_read_safe": True}
