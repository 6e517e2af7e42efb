"""The promise, in words and as data, and what one relation implies about another."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest

import evenhand as eh
from evenhand.guarantee import Guarantee, Relation


@pytest.mark.parametrize(
    ("relation", "hidden", "known"),
    [
        (Relation.PRESENCE, "whether any one user (account, device) is in the table at all", "Nothing about the table"),
        (Relation.VALUES, "all values of any one user (account, device)", "how many rows each user has"),
        (Relation.LABELS, "all labels of any one user (account, device)", "The features"),
    ],
)
def test_words_say_who_is_protected_from_what(relation: Relation, hidden: str, known: str) -> None:
    words = Guarantee(Decimal("0.2"), Decimal("1e-6"), relation, ("account", "device")).words()
    assert hidden in words
    assert known in words
    assert "ε = 0.2, δ = 1e-6" in words
    assert f"a factor of {math.exp(0.2):.3g}" in words


def test_public_columns_are_named() -> None:
    assert "genre" in Guarantee(Decimal(1), Decimal(0), Relation.VALUES, ("u",), ("genre",)).words()


def test_data_is_exact_and_json() -> None:
    data = Guarantee(Decimal("0.1"), Decimal("1e-9"), Relation.PRESENCE, ("u",)).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["exact"] == {"epsilon": "0.1", "delta": "1E-9"}
    assert data["protects"] == "presence"


def test_absurd_odds_do_not_overflow() -> None:
    assert "factor" in Guarantee(Decimal(10_000), Decimal(0), Relation.PRESENCE, ("u",)).words()


@pytest.mark.parametrize(
    ("release", "ledger", "steps"),
    [
        ("presence", "presence", 1),
        ("presence", "values", 2),
        ("presence", "labels", 2),
        ("values", "values", 1),
        ("values", "labels", 1),
        ("values", "presence", None),
        ("labels", "values", None),
        ("labels", "presence", None),
    ],
)
def test_what_one_relation_costs_under_another(release: str, ledger: str, steps: int | None) -> None:
    assert Relation(release).cost_under(Relation(ledger)) == steps


def test_an_unknown_relation_gets_a_hint() -> None:
    with pytest.raises(eh.UsageError, match="Did you mean 'presence'"):
        Relation.parse("presense")
