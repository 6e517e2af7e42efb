"""Which proofs are about code that has changed since they were last read? And, once read again, stamp them.

python docs/proofs/stamp.py              list the stale ones
python docs/proofs/stamp.py total-cap    stamp this one, having read it again
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STAMPS = HERE / "stamps.json"

Definition = ast.FunctionDef | ast.ClassDef
Stamps = dict[str, dict[str, list[str] | str]]


def load() -> Stamps:
    """The proofs with the code they are about."""
    stamps: Stamps = json.loads(STAMPS.read_text(encoding="utf-8"))
    return stamps


def stale() -> list[str]:
    """The proofs whose code is not what it was."""
    return [name for name, entry in load().items() if digest(entry["code"]) != entry["stamp"]]


def stamp(names: list[str]) -> None:
    """Record that these proofs were read against the code as it is now."""
    stamps = load()
    for name in names:
        stamps[name]["stamp"] = digest(stamps[name]["code"])
    STAMPS.write_text(json.dumps(stamps, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def digest(references: list[str] | str) -> str:
    """A hash of the code of some functions and classes, given as ``path::Class.function`` below ``src/evenhand``."""
    return hashlib.sha256("\n".join(_code(reference) for reference in references).encode()).hexdigest()[:16]


def _code(reference: str) -> str:
    """The code of one function or class, without comment lines, docstrings, white space and trailing commas."""
    path, _, name = reference.partition("::")
    source = (ROOT / "src" / "evenhand" / path).read_text(encoding="utf-8")
    node: ast.Module | Definition = ast.parse(source)
    for part in name.split("."):
        found = [child for child in ast.iter_child_nodes(node) if isinstance(child, Definition) and child.name == part]
        if not found:
            raise LookupError(f"{reference}: there is no {part}; a proof is about code that is gone")
        node = found[0]
    assert isinstance(node, Definition), reference
    lines = source.splitlines()
    for docstring in (_docstring(inner) for inner in ast.walk(node)):
        if docstring is not None:
            first, last = docstring.lineno - 1, docstring.end_lineno or docstring.lineno
            lines[first:last] = [""] * (last - first)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    kept = [line for line in lines[first - 1 : node.end_lineno] if not line.lstrip().startswith("#")]
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", "".join(kept)))


def _docstring(node: ast.AST) -> ast.Expr | None:
    if isinstance(node, Definition) and isinstance(node.body[0], ast.Expr):
        return node.body[0] if isinstance(node.body[0].value, ast.Constant) else None
    return None


if __name__ == "__main__":
    if sys.argv[1:]:
        stamp(sys.argv[1:])
    print("\n".join(stale()) or "all proofs are as they were read")
