"""The page of statistics, made from their docstrings and from the questions of a session.

python docs/statistics_page.py             # does docs/statistics.md say what the docstrings say?
python docs/statistics_page.py --update    # write it
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from evenhand import Session
from evenhand.statistics import STATISTICS, Statistic

PAGE = Path(__file__).parent / "statistics.md"
_OF_ALL = {"self", "epsilon", "delta", "bounding", "by", "keys", "other", "groups_per_user"}
_HEAD = """# Statistics

Made by `docs/statistics_page.py` from the docstrings, which say more: `help(eh.mean)`, or [on the site](reference/statistics.md), how each is released, what its interval covers and
its edge cases. Each is a method of a session; `eh.mean("stars", bounds=(1, 5))` is what `aggregate`, `ratio` and `ask` are given. [What holds for all](asking.md).

| statistic | value | by group | hidden names | proof |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_row(name, kind) for name, kind in STATISTICS.items())


def _row(name: str, kind: type[Statistic]) -> str:
    first, *rest = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    value = re.split(r"[:;.]", " ".join(first.split()).replace("``", "`"))[0]
    grouped = kind.has_groups or "by" in inspect.signature(getattr(Session, name)).parameters
    proofs = next(
        (part.removeprefix("Proof: ").rstrip(".").split(", ") for part in rest if part.startswith("Proof")), []
    )
    cells = [f"`{_call(name)}`", value, _yes(grouped), _yes(grouped and kind.selects_keys), _links(proofs)]
    return f"| {' | '.join(cells)} |\n"


def _call(name: str) -> str:
    parameters = [
        one for one in inspect.signature(getattr(Session, name)).parameters.values() if one.name not in _OF_ALL
    ]
    given = [
        one.name if one.default is inspect.Parameter.empty else f"{one.name}={one.default!r}" for one in parameters
    ]
    return f"{name}({', '.join(given)})"


def _links(proofs: list[str]) -> str:
    missing = [proof for proof in proofs if not (PAGE.parent / "proofs" / f"{proof}.md").exists()]
    if missing:
        raise ValueError(f"a docstring names {missing}, which are not in docs/proofs")
    return ", ".join(f"[{proof}](proofs/{proof}.md)" for proof in proofs)


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def main() -> int:
    """Check or write the page."""
    if "--update" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print("docs/statistics.md is not what the docstrings say; run `python docs/statistics_page.py --update`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
