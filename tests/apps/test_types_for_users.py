"""``py.typed`` keeps its word: a strict type checker accepts the README's code, and finds the mistakes in wrong code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import BLOCKS

ROOT = Path(__file__).parents[2]
OPEN = """
import evenhand as eh

session = eh.Session(eh.read("ratings.parquet", user="userId"), eh.Ledger("budget.db", epsilon=3.0))
"""


WRONG = [
    'session.meadian("rating")',
    "session.count(epsilon=[0.1])",
    "session.ledger.remaining.sigma",
    "eh.Table()",
]
ASKED = 'mean("rating", bounds=(0.5, 5), epsilon=0.2)'
ANSWERS = {f"session.{ASKED}": "Release", f"session.preview.{ASKED}": "Preview"}
FILES = {
    "readme_of_a_user": "\n".join(BLOCKS),
    "wrong_code_of_a_user": OPEN + "\n".join(WRONG),
    "answers_of_a_user": OPEN + "\n".join(f"reveal_type({answer})" for answer in ANSWERS),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says of users' files, in one run, with the project's settings and cache: it reads the package only once."""
    folder = tmp_path_factory.mktemp("user")
    paths = [folder / f"{name}.py" for name in FILES]
    for path, code in zip(paths, FILES.values(), strict=True):
        path.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "mypy", *paths], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith(f"Found {len(WRONG)} errors in 1 file"), done.stdout
    return {name: [line for line in lines if f"{name}.py:" in line] for name in FILES}


def test_the_readme_type_checks(said: dict[str, list[str]]) -> None:
    assert said["readme_of_a_user"] == []


def test_wrong_code_does_not_type_check(said: dict[str, list[str]]) -> None:
    found = [re.findall(r":(\d+): error:", line) for line in said["wrong_code_of_a_user"]]
    assert found == [[str(OPEN.count("\n") + 1 + place)] for place in range(len(WRONG))]


def test_answers_have_types(said: dict[str, list[str]]) -> None:
    """Not Any, which would accept everything."""
    found = re.findall(r'note: Revealed type is ".*?(\w+)"', "\n".join(said["answers_of_a_user"]))
    assert found == list(ANSWERS.values())
