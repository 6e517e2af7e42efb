"""``evenhand audit``: what it prints, what it writes, and that it can fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import evenhand.audit.twins
from evenhand.apps.cli import app
from evenhand.audit import BlackBox, Claim
from evenhand.audit.twins import Twin
from evenhand.guarantee import Relation, UsageError

RUNNER = CliRunner()


def test_json_is_one_object_with_a_verdict() -> None:
    result = RUNNER.invoke(app, ["audit", "--quick", "--only", "maxsense", "--json"])
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["sound"] is True
    assert {finding["name"].split()[0] for finding in told["findings"]} == {"maxsense", "multi-maxsense"}
    assert all(finding["epsilon"] <= 1 + 1e-9 and not finding["refuted"] for finding in told["findings"])


def test_a_twin_is_shown_as_caught_and_a_dated_page_is_written(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["audit", "--quick", "--only", "exact row count", "--out", str(tmp_path / "audits")])
    assert result.exit_code == 0
    assert "caught" in result.stdout
    (page,) = (tmp_path / "audits").iterdir()
    assert "exact row count" in page.read_text(encoding="utf-8")


def test_a_twin_that_goes_unnoticed_fails_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = Twin(BlackBox("harmless", Claim(1.0), lambda table: 0.0), Relation.PRESENCE)
    monkeypatch.setattr(evenhand.audit.twins, "twins", lambda: (harmless,))
    result = RUNNER.invoke(app, ["audit", "--quick", "--only", "harmless"])
    assert result.exit_code == 1
    assert "FAIL" in result.stdout


@pytest.mark.parametrize("options", [["--samples", "5"], ["--only", "no such thing", "--quick"]])
def test_bad_usage_is_refused(options: list[str]) -> None:
    result = RUNNER.invoke(app, ["audit", *options])
    assert isinstance(result.exception, UsageError)


def test_the_example_on_the_page_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "trust" / "checks.md").read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", page, re.DOTALL).groups()  # type: ignore[union-attr]
    exec(code, {})
    assert capsys.readouterr().out == shown
