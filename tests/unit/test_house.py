"""The rules of the house that can be read from the tree: what one room knows stays in that room."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import evenhand as eh
from evenhand import bounding

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "evenhand"
LONGEST = 600
STRATEGIES = "|".join(name for name in bounding.__all__ if name in {*eh.__all__, "LocatedMean"})


@dataclass(frozen=True)
class Rule:
    """A pattern that may occur only below some paths of the package.

    Args:
        pattern: what must not be there.
        example: a line that breaks the rule.
        allowed: below ``src/evenhand``.
        only: the one file it is about; all Python of the package unless given.
        words: also for README and docs.
    """

    pattern: str
    example: str
    allowed: tuple[str, ...] = ()
    only: str = "**/*.py"
    words: bool = False

    def files(self) -> Iterator[Path]:
        for path in SRC.glob(self.only):
            if not path.relative_to(SRC).as_posix().startswith(self.allowed):
                yield path
        if self.words:
            yield from (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))

    def broken_in(self, files: Iterable[Path]) -> list[str]:
        return [
            f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
            for path in sorted(files)
            for text in [path.read_text(encoding="utf-8")]
            for found in re.finditer(self.pattern, text)
        ]


RULES = {
    "the server's pages are made of templates that escape": Rule(
        r"""\bf["'][^"'\n]*<|Markup\((?!\s*["')]|release_pictures\(|budget_bar\(|drawn\)|STYLE\)|template\))|html import escape""",
        """body = f'<p class="lead">{lead}</p>'""",
        only="pages/service/*.py",
    ),
    "only bounding tells strategies apart": Rule(
        rf"isinstance\([^)]*\b(?:{STRATEGIES})\b|case (?:\w+\.)?(?:{STRATEGIES})\(",
        "if isinstance(strategy, eh.TotalCap):",
        ("bounding/",),
    ),
    "only release opens a secret": Rule(r"\.reveal\(", "secret.reveal()", ("release/", "tables/secret.py")),
    "only engines know engines by name": Rule(
        r"engine\.name (?:[=!]=|in |not in )", 'if table.engine.name == "spark":', ("tables/engines/",)
    ),
    "only pages write HTML": Rule(r"<(?:style|html)\b", "'<html lang=\"en\">'", ("pages/",)),
    "answers of a session have types": Rule(r"-> Any", "def count(self) -> Any:", only="session.py"),
    "decimal contexts are made in one place": Rule(
        r"\bimport decimal\b|from decimal import [^\n]*(?:Context|context|\()|\b(?:get|local|set)context\b",
        "from decimal import Context, Decimal",
        ("guarantee/amounts.py",),
    ),
    "what is cited is in the repository": Rule(r"\bmethod\.md\b", "Reference: method.md §3."),
    "weighted is the word of the field": Rule(r"(?i)\bweighed\b", "Weighed rows", words=True),
}


@pytest.mark.parametrize("name", RULES)
def test_the_house_keeps_its_rules(name: str) -> None:
    rule = RULES[name]
    assert rule.broken_in(rule.files()) == []


@pytest.mark.parametrize("name", RULES)
def test_a_broken_rule_is_noticed(name: str) -> None:
    assert re.search(RULES[name].pattern, RULES[name].example)
    assert any(RULES[name].files())


def test_modules_are_short() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in SRC.rglob("*.py")
    }
    del long[
        "src/evenhand/session.py"
    ]  # one method per question, each with all its keywords, for people who look them up
    assert {path: lines for path, lines in long.items() if lines > LONGEST} == {}


def test_the_guide_for_contributors_names_what_is_there() -> None:
    named = re.findall(r"`((?:[\w*-]+/)+[\w*.-]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [path for path in named if not any([*ROOT.glob(path), *SRC.glob(path)])] == []
