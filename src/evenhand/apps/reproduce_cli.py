"""``evenhand reproduce``: compute a figure or table of a paper again."""

from __future__ import annotations

import importlib
import inspect
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.apps.console import progress, show_json
from evenhand.guarantee import UsageError, suggest

PAPERS = ("amin2018", "amin2019", "epasto2020", "rameshwar2024", "banerjee")
_FACTS = ("name", "found", "low", "high", "holds")

HELP = """Reproduce a figure or table of a paper, and check its numbers.

Without a name, lists the reproductions. `all` runs them all. Needs the source repository with its folder reproductions/.

Exit codes: 0 all numbers as expected, 1 some are not, 2 bad usage.
"""

EXAMPLES = """Examples:

evenhand reproduce

evenhand reproduce amin2019-fig1 --out figures

evenhand reproduce all --small --out figures
"""


def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which one; leave out to list them, or `all`.")] = None,
    out: Annotated[Path, typer.Option(help="Where figures and numbers are written.")] = Path("figures"),
    small: Annotated[bool, typer.Option("--small", help="Reduced size: seconds instead of minutes.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Your copy of the real data, where a reproduction can use it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Reproduce a figure (the help text is `HELP`)."""
    known = registry()
    if name is None:
        show_json({"reproductions": sorted(known)}) if as_json else print("\n".join(sorted(known)))
        return
    if name != "all" and name not in known:
        raise UsageError(
            f"{name!r} is not a reproduction; expected one of {', '.join(sorted(known))}.{suggest(name, known)}"
        )
    results: dict[str, dict[str, Any]] = {}
    for each in sorted(known) if name == "all" else [name]:
        start, run = time.perf_counter(), known[each]
        own = {"data": data} if data is not None and "data" in inspect.signature(run).parameters else {}
        with progress(f"Reproducing {each}"):
            outcome = run(out, "small" if small else "full", **own)
        checks = [{name: getattr(check, name) for name in _FACTS} for check in outcome.checks]
        results[each] = {"seconds": round(time.perf_counter() - start, 1), "checks": checks}
        if not as_json:
            _show(each, results[each])
    if as_json:
        show_json(results)
    elif out.exists():
        print(f"Written to {out}")
    if not all(check["holds"] for result in results.values() for check in result["checks"]):
        raise typer.Exit(1)


def registry() -> dict[str, Any]:
    """All reproductions by name, from the repository that this installation comes from."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "reproductions").is_dir():
        raise UsageError(
            "reproductions come with the source repository, not with the installed package; clone it and run there."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    found: dict[str, Any] = {}
    for paper in PAPERS:
        found |= importlib.import_module(f"reproductions.{paper}").REPRODUCTIONS
    return found


def _show(name: str, result: dict[str, Any]) -> None:
    print(f"{name} ({result['seconds']:.0f} s)")
    for check in result["checks"]:
        verdict = "as expected" if check["holds"] else "NOT AS EXPECTED"
        print(f"  {check['name']}: {check['found']:.4g} (expected {check['low']:g} to {check['high']:g}) {verdict}")
