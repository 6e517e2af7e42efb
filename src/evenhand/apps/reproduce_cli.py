"""``evenhand reproduce``: compute a figure or table of a paper again."""

from __future__ import annotations

import importlib
import inspect
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.apps.console import AsJson, progress, show_json
from evenhand.guarantee import UsageError, suggest

PAPERS = ("amin2018", "amin2019", "epasto2020", "rameshwar2024", "banerjee")
_FACTS = ("name", "found", "low", "high", "interval", "holds")

HELP = """Reproduce a figure or table of a paper, and check its numbers.

Without a name, lists the reproductions. `all` runs them all, and writes table.md: what each paper says, and what comes out. The
time and the most memory of each are printed. Needs the source repository with its folder reproductions/.

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
    as_json: AsJson = False,
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
    outcomes: dict[str, Any] = {}
    for each in sorted(known) if name == "all" else [name]:
        start, run = time.perf_counter(), known[each]
        own = {"data": data} if data is not None and "data" in inspect.signature(run).parameters else {}
        with progress(f"Reproducing {each}"), most_memory() as memory:
            outcome = outcomes[each] = run(out, "small" if small else "full", **own)
        checks = [{name: getattr(check, name) for name in _FACTS} for check in outcome.checks]
        seconds = round(time.perf_counter() - start, 1)
        results[each] = {"seconds": seconds, "megabytes": memory[0], "checks": checks}
        if not as_json:
            _show(each, results[each])
    if name == "all":
        _write_table(out / "table.md", outcomes, "small" if small else "full")
    if as_json:
        show_json(results)
    elif out.exists():
        print(f"Written to {out}")
    if not all(check["holds"] for result in results.values() for check in result["checks"]):
        raise typer.Exit(1)


def _write_table(path: Path, outcomes: dict[str, Any], size: str) -> None:
    """The lines of reproductions/README.md."""
    claims = importlib.import_module("reproductions.claims")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(claims.table(outcomes, size), encoding="utf-8")


@contextmanager
def most_memory() -> Iterator[list[int]]:
    """The most memory of this process meanwhile, in MB; where the system can't start counting anew, since the process began."""
    reset, found = Path("/proc/self/clear_refs"), [0]
    with suppress(OSError):
        reset.write_text("5")
    yield found
    with suppress(OSError, StopIteration):
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        found[0] = int(peak.split()[1]) // 1024
        return
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    found[0] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


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
    print(f"{name} ({result['seconds']:.0f} s, {result['megabytes']:,} MB)")
    for check in result["checks"]:
        verdict = "as expected" if check["holds"] else "NOT AS EXPECTED"
        low, high = check["interval"] or (None, None)
        span = "" if low is None else f", interval {low:.4g} to {high:.4g}"
        print(
            f"  {check['name']}: {check['found']:.4g}{span} (expected {check['low']:g} to {check['high']:g}) {verdict}"
        )
