"""The documentation tells the truth: links lead somewhere, code runs, outputs and pictures show what the code does."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

from evenhand.apps.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def load(path: str) -> ModuleType:
    """A script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def broken_links(page: Path, text: str) -> list[str]:
    """Relative links of a text on a page that lead nowhere, anchors included."""
    broken = []
    for link in _LINK.findall(_CODE.sub("", text)):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    return broken


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_broken_links_are_noticed() -> None:
    page = ROOT / "docs" / "asking.md"
    text = "[a](nowhere.md) [b](#hidden-group-names) [c](#nothing) [d](ledger.md)"
    assert broken_links(page, text) == ["nowhere.md", "#nothing"]


def test_the_page_of_statistics_says_what_their_docstrings_say() -> None:
    made = load("docs/statistics_page.py")
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run `python docs/statistics_page.py --update`"


@pytest.mark.parametrize("page", load("docs/run.py").PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_run_and_show_what_is_printed(page: Path, request: pytest.FixtureRequest) -> None:
    needed = page.relative_to(ROOT).as_posix() in load("docs/brought.py").NEED_POSTGRES
    shown = load("docs/run.py").run(page, request.getfixturevalue("postgres_url") if needed else "")
    stale = [f"{one.block.text}\nis now\n{one.printed}" for one in shown if not one.agrees]
    assert not stale, "run `python docs/run.py --update` and read the difference: " + "\n".join(stale)


def test_a_stale_output_is_noticed() -> None:
    run = load("docs/run.py")
    printed = "mean of stars: 3.4945\n  95% interval     3.48 to 3.50\n"
    for shown, agrees in (
        ("mean of stars: 3.61 95% interval 3 to 4,000.5", True),
        ("mean of ...", True),
        ("sum of stars: 3.49 ...", False),
    ):
        assert run.Shown(run.Block("text", shown, 0), printed).agrees is agrees


@pytest.mark.parametrize("name", load("docs/pictures/make.py").PICTURES)
def test_pictures_show_what_the_code_does(name: str) -> None:
    make = load("docs/pictures/make.py")
    picture = make.auto(times=1) if name == "auto" else make.PICTURES[name]()
    drawn = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert f"<desc>points {picture.digest}</desc>" in drawn, (
        "run `python docs/pictures/make.py` and look at the picture"
    )


def test_a_changed_strategy_changes_its_picture() -> None:
    make = load("docs/pictures/make.py")
    points = [{"x": 1, "y": 2.0, "series": "a"}]
    assert make.Picture(points, None).digest != make.Picture([{**points[0], "y": 2.1}], None).digest


def shown_commands() -> list[str]:
    """All ``evenhand`` command lines in shell blocks of any page."""
    found = []
    for page in PAGES:
        for block in re.findall(
            r"^```(?:console|sh|bash)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            lines = block.replace("\\\n", " ").splitlines()
            found += [line.removeprefix("$ ") for line in lines if line.removeprefix("$ ").startswith("evenhand ")]
    return found


def unknown_words(command_line: str) -> list[str]:
    """Subcommands and options of a command line that do not exist."""
    words, command = shlex.split(command_line, comments=True)[1:], typer.main.get_command(app)
    while (commands := getattr(command, "commands", None)) and words and not words[0].startswith("-"):
        if words[0] not in commands and "run" not in commands:
            return words[:1]
        command = commands[words.pop(0) if words[0] in commands else "run"]
    command = getattr(command, "commands", {}).get("run", command)  # ``serve`` is ``serve run``
    known = {"--help", *(option for parameter in command.params for option in parameter.opts)}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize("command_line", shown_commands())
def test_commands_exist(command_line: str) -> None:
    assert unknown_words(command_line) == []


def test_unknown_commands_are_noticed() -> None:
    assert unknown_words("evenhand relaese mean x.csv") == ["relaese"]
    assert unknown_words("evenhand ledger show --jsno budget.db") == ["--jsno"]
