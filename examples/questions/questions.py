"""Twelve questions that people ask about a shop, each as one call in Python and as one query in SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from shop import DEPARTMENTS, Shop

import evenhand as eh

Session = Any
"""A session, its preview, or drafts: they are asked alike."""


@dataclass(frozen=True)
class Question:
    """What somebody wants to know.

    Args:
        title: in their words.
        table: what is asked about: a view of the shop.
        python: one call.
        sql: one query; about ``table``, with the shop's other tables to join.
        options: names of groups that are public, or δ where they are hidden.
    """

    title: str
    table: Callable[[Shop], eh.Table]
    python: Callable[[Session], Any]
    sql: str
    options: dict[str, Any] = field(default_factory=dict)


QUESTIONS = [
    Question(
        "How many households bought something?",
        lambda shop: shop.sales,
        lambda ask: ask.users(epsilon=1),
        "SELECT COUNT(DISTINCT household) FROM sales",
    ),
    Question(
        "How many purchases were there in spring?",
        lambda shop: shop.sales.where(eh._.day >= "2026-03-01", eh._.day < "2026-06-01"),
        lambda ask: ask.count(epsilon=1),
        "SELECT COUNT(*) FROM sales WHERE day >= DATE '2026-03-01' AND day < DATE '2026-06-01'",
    ),
    Question(
        "What is sold in each department?",
        lambda shop: shop.with_products,
        lambda ask: ask.sum("amount", by="department", keys=DEPARTMENTS, epsilon=1),
        "SELECT department, SUM(amount) FROM sales JOIN products USING (product_id) GROUP BY department",
        {"keys": DEPARTMENTS},
    ),
    Question(
        "How much is spent on one purchase, on average, without coupons?",
        lambda shop: shop.sales.where(~eh._.coupon),
        lambda ask: ask.mean("amount", epsilon=1),
        "SELECT AVG(amount) FROM sales WHERE NOT coupon",
    ),
    Question(
        "Which part of the purchases is made with a coupon?",
        lambda shop: shop.sales.derive(used=eh._.coupon.ifelse(1, 0)),
        lambda ask: ask.mean("used", bounds=(0, 1), epsilon=1),
        "SELECT AVG(CASE WHEN coupon THEN 1 ELSE 0 END, contribution_bounds_per_row => (0, 1)) FROM sales",
    ),
    Question(
        "How do purchases follow the week?",
        lambda shop: shop.sales.derive(weekday=eh._.day.day_of_week.index()),
        lambda ask: ask.count(by="weekday", keys=list(range(7)), epsilon=1),
        "SELECT EXTRACT(ISODOW FROM day) - 1 AS weekday, COUNT(*) FROM sales GROUP BY weekday",
        {"keys": list(range(7))},
    ),
    Question(
        "What does the typical purchase of bread cost?",
        lambda shop: shop.with_products.where(eh._.department == "bakery"),
        lambda ask: ask.median("amount", epsilon=1),
        "SELECT MEDIAN(amount) FROM sales JOIN products USING (product_id) WHERE department = 'bakery'",
    ),
    Question(
        "What do nine of ten purchases stay below?",
        lambda shop: shop.sales,
        lambda ask: ask.quantiles("amount", [0.9], epsilon=1),
        "SELECT QUANTILE_CONT(amount, 0.9) FROM sales",
    ),
    Question(
        "How many households of each region are customers?",
        lambda shop: shop.with_households,
        lambda ask: ask.users(by="region", epsilon=1),
        "SELECT region, COUNT(DISTINCT household) FROM sales JOIN households USING (household) GROUP BY region",
    ),
    Question(
        "How much do purchases of large households vary?",
        lambda shop: shop.with_households.where(eh._.size >= 4),
        lambda ask: ask.std("amount", epsilon=1),
        "SELECT STDDEV(amount) FROM sales JOIN households USING (household) WHERE size >= 4",
    ),
    Question(
        "What sells in which month, and for how much?",
        lambda shop: shop.sales.derive(month=eh._.day.month()),
        lambda ask: ask.aggregate(by="month", keys=list(range(1, 7)), n=eh.count(), amount=eh.sum("amount"), epsilon=1),
        "SELECT EXTRACT(MONTH FROM day) AS month, COUNT(*) AS n, SUM(amount) AS amount FROM sales GROUP BY month",
        {"keys": list(range(1, 7))},
    ),
    Question(
        "Which products do most households buy?",
        lambda shop: shop.sales,
        lambda ask: ask.users(by="product_id", epsilon=1, delta=1e-6),
        "SELECT product_id, COUNT(DISTINCT household) AS buyers FROM sales GROUP BY product_id ORDER BY buyers DESC LIMIT 10",
        {"delta": 1e-6},
    ),
]


def in_sql(question: Question, shop: Shop, ask: Session) -> Any:
    """The question as its query."""
    tables = {"products": shop.products, "households": shop.households}
    named = {name: table for name, table in tables.items() if f"JOIN {name}" in question.sql}
    return ask.sql(question.sql, epsilon=1, tables=named or None, **question.options)
