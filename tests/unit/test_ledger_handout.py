"""What a ledger hands out: a compliance page of a history that is whole, and an entry in the schema of the public registry."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.ledger import Budget, handout
from evenhand.ledger.desk import Desk, Limits, NeedsApproval
from evenhand.ledger.registry import Told, entry, yaml
from evenhand.pages.compliance import compliance_page

SCRIPT = "<script>alert('1')</script>"
TABLE = pd.DataFrame({"u": range(400), "v": [1.0] * 400})


def asked(folder: Path, delta: str = "0") -> eh.Ledger:
    """A ledger with a count, a mean, and a public-looking name that is code."""
    ledger = eh.Ledger(folder / "b.db", epsilon=3, delta=delta, who=SCRIPT)
    session = eh.Session(eh.read(TABLE, user="u"), ledger)
    session.count(epsilon="0.5", bounding=eh.TotalCap(1))
    session.mean("v", bounds=(0, 2), epsilon=1)
    return ledger


def test_compliance_says_all(tmp_path: Path) -> None:
    told = handout.compliance(asked(tmp_path))
    assert [one["epsilon"] for one in told["releases"]] == ["0.5", "1"]
    assert "capped at 1" in told["releases"][0]["bounded"]
    assert "chosen privately" in told["releases"][1]["bounded"]
    assert told["askers"] == {SCRIPT: Budget(Decimal("1.5"))}
    page = compliance_page(told)
    for words in (
        "whether any one user (u) is in the table at all",
        "a factor of 20.1",
        "ε = 1.5",
        "mean of v",
        "add up to at most",
    ):
        assert words in page
    assert "<script" not in page
    assert str(tmp_path) not in page


def test_an_edited_history_has_no_page(tmp_path: Path) -> None:
    ledger = asked(tmp_path)
    with sqlite3.connect(tmp_path / "b.db") as database:
        triggers = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in triggers:
            database.execute(f"DROP TRIGGER {name}")
        (events,) = (
            row[0]
            for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "event" in row[0]
        )
        assert database.execute(f"UPDATE {events} SET query = replace(query, 'mean', 'sum')").rowcount
    with pytest.raises(eh.LedgerError):
        handout.compliance(ledger)


def test_an_empty_ledger(tmp_path: Path) -> None:
    ledger = eh.Ledger(tmp_path / "b.db", epsilon=1)
    assert "Nothing was released yet." in compliance_page(handout.compliance(ledger))
    with pytest.raises(eh.UsageError, match="no release yet"):
        entry(ledger)


def test_who_decided(tmp_path: Path) -> None:
    """What a keeper approved is told apart from what was within an analyst's limits."""
    desk = Desk(eh.Ledger(tmp_path / "b.db", epsilon=9))
    limits = Limits(Budget(Decimal(5)), unapproved=Decimal(1))

    def ask(key: str, epsilon: str) -> None:
        eh.Session(eh.read(TABLE, user="u"), desk.question_ledger("ann", key, key, limits)).users(epsilon=epsilon)

    ask("first", "1")
    with pytest.raises(NeedsApproval):
        ask("second", "2")
    (waiting,) = desk.asked(standing=None)[1:]
    desk.decide(waiting.id, approve=True, by="kim")
    ask("second", "2")
    decided = [one["decided"] for one in handout.compliance(desk.ledger)["releases"]]
    assert decided == ["within the limits that the keeper set", "approved by kim"]
    assert desk.spent("ann") == Budget(Decimal(3))
    assert desk.spent("ann", approved=False) == desk.spent(approved=False) == Budget(Decimal(1))
    assert entry(desk.ledger)["deployment"]["deployment_model"]["access_type"] == "Interactive"


# The registry's schema: names of fields by section, required ones first; and what may stand in some.
SCHEMA = {
    "basic": ["name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region", "publication_date"],
    "dp_variant": ["variant_name", "data_domain", "unprotected_quantities"],
    "privacy_loss": ["privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"],
    "deployment_model": [
        "model_name", "actors", "release_type", "release_type_details", "data_source_type_details", "access_type", "access_type_details",
    ],
    "accounting": ["post_processing", "composition"],
    "implementation": ["preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"],
    "administrative": ["registry_authors", "notes"],
}  # fmt: skip
CHOICES = {
    "data_product_type": {"Summary statistics", "Interactive API"},
    "variant_name": {"Pure DP", "Approximate DP"},
    "model_name": {"Central"},
    "release_type": {"One release", "Many releases"},
    "access_type": {"Interactive", "Non-interactive"},
}


@pytest.mark.parametrize(("delta", "variant"), [("0", "Pure DP"), ("1e-6", "Approximate DP")])
def test_the_entry_fits_the_registry(delta: str, variant: str, tmp_path: Path) -> None:
    reader = pytest.importorskip("yaml")
    told = Told(name=f'Quotes " and\nlines: {SCRIPT} #', curator="ε & Söhne", author="- me")
    made = entry(asked(tmp_path, delta), told, "Our Views!")
    read: dict[str, Any] = reader.safe_load(yaml(made))
    assert list(read) == ["url_slug", "status", "tier", "deployment"]
    assert (read["url_slug"], read["status"], read["tier"]) == ("our_views", "Draft", 3)
    parts = read["deployment"]
    assert list(parts) == list(SCHEMA)
    for section, names in SCHEMA.items():
        assert set(parts[section]) <= set(names)
        for name, allowed in CHOICES.items():
            assert parts[section].get(name) in {None, *allowed}
    assert set(parts["basic"]) == set(SCHEMA["basic"])
    assert parts["basic"]["name"] == told.name
    assert parts["basic"]["data_curators"] == ["ε & Söhne"]
    assert parts["basic"]["intended_use"].startswith("TO BE FILLED IN")
    assert parts["dp_variant"]["variant_name"] == variant
    parameters = parts["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == 3
    assert float(parameters.get("delta", 0)) == float(delta)
    assert "one more user (u)" in parts["privacy_loss"]["privacy_unit_details"]
