"""Run the tutorials, so that what they show is what happens.

python docs/tutorials/run.py              # check: every cell runs, and gives outputs of the kinds that are kept
python docs/tutorials/run.py --update     # keep what is printed now
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """The notebook with what its cells give now, run in an empty folder."""
    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(book, timeout=120, resources={"metadata": {"path": folder}}).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":  # what goes to standard error is progress
            cell.outputs = [_kept(output, folder) for output in cell.outputs if output.get("name") != "stderr"]
    return book


def _kept(output: Any, folder: str) -> Any:
    """An output without the name of the folder."""
    data = output.get("data", {})
    for holder, kind in [(output, "text"), (data, "text/plain"), (data, "text/html")]:
        if kind in holder:
            holder[kind] = holder[kind].replace(f"{folder}/", "")
    return output


def agrees(path: Path) -> bool:
    """Whether all cells run and give what they show: outputs of the same kinds. The noise in them is drawn anew."""
    return _kinds(executed(path)) == _kinds(nbformat.read(path, as_version=4))


def _kinds(book: Any) -> list[list[str]]:
    outputs = [cell.outputs for cell in book.cells if cell.cell_type == "code"]
    # A set: what two prints give may come in one piece or in two.
    return [
        sorted({" ".join([output.output_type, *sorted(output.get("data", {}))]) for output in each}) for each in outputs
    ]


if __name__ == "__main__":
    if "--update" in sys.argv:
        for path in NOTEBOOKS:
            nbformat.write(executed(path), path)
    else:
        stale = [path.name for path in NOTEBOOKS if not agrees(path)]
        sys.exit(f"no longer show what happens: {', '.join(stale)}; run with --update" if stale else 0)
