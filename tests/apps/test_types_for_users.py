"""``py.typed`` keeps its word: a strict type checker accepts the README's code, and finds the mistakes in wrong code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from test_readme import BLOCKS

ROOT = Path(__file__).parents[2]
OPEN = """
import evenhand as eh

session = eh.Session(eh.read("ratings.parquet", user="userId"), eh.Ledger("budget.db", epsilon=3.0))
"""


def check(code: str, folder: Path) -> tuple[int, str]:
    """What mypy says of a user's file. It runs with the project's settings and cache, so that it reads the package only once."""
    file = folder / "a_users_file.py"
    file.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "mypy", file], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def test_the_readme_type_checks(tmp_path: Path) -> None:
    status, said = check("\n".join(BLOCKS), tmp_path)
    assert status == 0, said


def test_wrong_code_does_not_type_check(tmp_path: Path) -> None:
    wrong = [
        'session.meadian("rating")',
        "session.count(epsilon=[0.1])",
        "session.ledger.remaining.sigma",
        "eh.Table()",
    ]
    status, said = check(OPEN + "\n".join(wrong), tmp_path)
    assert status == 1, said
    assert re.findall(r":(\d+): error:", said) == [str(OPEN.count("\n") + 1 + place) for place in range(len(wrong))]


def test_answers_have_types(tmp_path: Path) -> None:
    """Not Any, which would accept everything."""
    asked = 'mean("rating", bounds=(0.5, 5), epsilon=0.2)'
    answers = {f"session.{asked}": "Release", f"session.preview.{asked}": "Preview"}
    status, said = check(OPEN + "\n".join(f"reveal_type({answer})" for answer in answers), tmp_path)
    assert status == 0, said
    assert re.findall(r'Revealed type is ".*?(\w+)"', said) == list(answers.values())
