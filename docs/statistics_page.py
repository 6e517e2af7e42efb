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
_SAID_ONCE = {"column", "bounds", "keys", "groups_per_user"}
_OF_ALL = {"self", "epsilon", "delta", "bounding", "by", "keys", "other", "groups_per_user"}
_HEAD = """# Statistics

Made from the docstrings by `docs/statistics_page.py`. Each statistic is a method of a session; without `session.` it is what `aggregate`,
`ratio` and `ask` are given: `eh.mean("stars", bounds=(1, 5))`. All take `epsilon=`, `delta=` and `bounding=`, those by group also `by=`, `keys=` and `other=`,
those with hidden group names `groups_per_user=` ([what holds for all](asking.md)). `bounds` is the range of one value, `(low, high)`, or one end and None; chosen without
looking at the data, found privately where left out.

"""


def page() -> str:
    """The whole page."""
    rows = [_row(name, kind) for name, kind in STATISTICS.items()]
    table = "\n".join(["| statistic | by group | hidden group names |", "|---|---|---|", *rows])
    return _HEAD + table + "\n\n" + "\n".join(_section(name, kind) for name, kind in STATISTICS.items())


def _row(name: str, kind: type[Statistic]) -> str:
    grouped = kind.has_groups or "by" in inspect.signature(getattr(Session, name)).parameters
    said = ["is by group" if kind.has_groups else _yes(grouped), _yes(grouped and kind.selects_keys)]
    return f"| [{name}](#{name}) | {' | '.join(said)} |"


def _section(name: str, kind: type[Statistic]) -> str:
    method = getattr(Session, name)
    parameters = [one for one in inspect.signature(method).parameters.values() if one.name not in _OF_ALL]
    call = ", ".join(
        one.name if one.default is inspect.Parameter.empty else f"{one.name}={one.default!r}" for one in parameters
    )
    text, _, _ = inspect.cleandoc(kind.__doc__ or "").partition("\n\nArgs:")
    parts = [f"## {name}", f"`session.{name}({call})`", *map(_paragraph, text.split("\n\n")), *_arguments(method)]
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    """A paragraph as Markdown, its first word in italics where it is a label, proofs as links."""
    label, colon, rest = " ".join(text.split()).partition(": ")
    if label == "Proof":
        return "*Proof*: " + re.sub(r"[a-z]+(?:-[a-z]+)*(?=[,;.])", _link, rest)
    if colon and label in {"Interval", "Under values", "Edge cases"}:
        return _marked(f"*{label}*: {rest}")
    return _marked(" ".join(text.split()))


def _link(proof: re.Match[str]) -> str:
    if not (PAGE.parent / "proofs" / f"{proof[0]}.md").exists():
        raise ValueError(f"a docstring names the proof {proof[0]}, which is not in docs/proofs")
    return f"[{proof[0]}](proofs/{proof[0]}.md)"


def _arguments(method: object) -> list[str]:
    """What the method says of its own parameters."""
    text = inspect.getdoc(method) or ""
    found = re.search(r"^Args:\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    if not found:
        return []
    parts = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", found[1], re.MULTILINE)
    own = [f"- `{name}`: {_marked(' '.join(words.split()))}" for name, words in parts if name not in _SAID_ONCE]
    return ["\n".join(own)] if own else []


def _marked(text: str) -> str:
    """Python's marks for code as Markdown's."""
    return text.replace("``", "`")


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
