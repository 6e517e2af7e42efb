"""Random queries: each is refused before anything is read, or it keeps users apart and its rows are those of the same SQL in DuckDB."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from test_view_neighbours import mixed_up

import evenhand as eh
from evenhand.tables.queries.reading import read_query

MANY = 150 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 8
CHANCE = random.Random(9)
ROWS = 40
SALES = pa.table(
    {
        "u": [f"user {place % 4}" for place in range(ROWS)],
        "a": [CHANCE.choice([None, -3, 0, 1, 2, 40]) for _ in range(ROWS)],
        "x": [CHANCE.choice([None, -2.5, 0.0, 0.25, 3.0]) for _ in range(ROWS)],
        "s": [CHANCE.choice([None, "", "a", "A", "bc"]) for _ in range(ROWS)],
        "p": [CHANCE.choice([None, True, False]) for _ in range(ROWS)],
    }
)
HOMES = SALES.slice(0, 7).select(["u", "a"]).rename_columns(["u", "size"])


class Writer:
    """Writes random queries; ``unsafe`` says whether the last one looks at the rows of several users, or at something random."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.unsafe = chance, False

    def number(self, depth: int) -> str:
        leaves = ["a", "x", "size", "0", "2", "1.5", "LENGTH(s)"]
        if depth == 0:
            return self.chance.choice(leaves[:2] + leaves[3:])
        one, two = self.number(depth - 1), self.number(depth - 1)
        kinds = [
            f"({one} + {two})",
            f"({one} * {two})",
            f"({one} / NULLIF({two}, 0))",
            f"COALESCE({one}, {two})",
            f"ABS({one})",
            f"NULLIF({one}, {two})",
        ]
        kinds += [
            f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {two} END",
            f"GREATEST({one}, {two})",
            f"(-{one})",
            f"SIGN({one})",
            "STRPOS(s, 'c')",
            f"LENGTH(CONCAT(s, '-', {self.chance.choice('as')}, p))",
            "LENGTH(CONCAT_WS('--', s, a, p))",
            "LENGTH(SPLIT_PART(s, 'b', 2))",
            f"LENGTH(LPAD(s, {self.chance.randint(0, 4)}, '.') || RPAD(s, 2, '.'))",
        ]
        return self.chance.choice(kinds)

    def condition(self, depth: int) -> str:
        one, two = self.number(max(depth - 1, 0)), self.number(max(depth - 1, 0))
        kinds = [
            f"{one} > {two}",
            f"{one} <= {two}",
            f"{one} = {two}",
            f"{one} IS NULL",
            f"{one} BETWEEN -1 AND {two}",
            "p",
            "s LIKE '%b%'",
        ]
        kinds += [
            "s IN ('a', 'bc')",
            "NOT p",
            "LOWER(s) = 'a'",
            "s < 'b'",
            "s NOT LIKE 'a%'",
            "s NOT ILIKE '%A'",
            "s ILIKE 'B_'",
        ]
        kinds += [
            f"{one} IS NOT DISTINCT FROM {two}",
            "s IS DISTINCT FROM 'a'",
            "a NOT IN (1, 2)",
            f"POSITION('b' IN s) > {two}",
        ]
        if depth > 0:
            kinds += [f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})" for word in ("AND", "OR")]
        return self.chance.choice(kinds)

    def aggregate(self) -> str:
        of, kind = (
            f"({self.chance.choice('ax')} + {self.number(1)})",
            self.chance.choice(["SUM", "AVG", "MIN", "MAX", "COUNT", "COUNT(*)", "COUNT(1)", "DISTINCT"]),
        )
        found = kind if kind.endswith(")") else f"{kind}({of})".replace("DISTINCT(", "COUNT(DISTINCT ")
        return f"{found} FILTER (WHERE a > 0 AND {self.condition(1)})" if self.chance.random() < 0.3 else found

    def rows(self, source: str) -> str:
        where = f" WHERE {self.condition(2)}" if self.chance.random() < 0.6 else ""
        if self.chance.random() < 0.4:
            among = self.chance.choice(
                [
                    "u IN (SELECT u FROM homes WHERE size > 1)",
                    "u NOT IN (SELECT DISTINCT u FROM homes WHERE size > 1)",
                    f"u IN (SELECT u FROM sales WHERE {self.condition(1)})",
                    "u NOT IN (SELECT u FROM sales GROUP BY u HAVING SUM(a) > 40)",
                ]
            )
            where = f"{where} AND {among}" if where else f" WHERE {among} OR p"
        more = "".join(f", {self.number(2)} AS n{place}" for place in range(self.chance.randint(0, 2)))
        return f"SELECT *{more} FROM {source}{where}"

    def per_user(self, source: str) -> str:
        made = ", ".join(f"{self.aggregate()} AS t{place}" for place in range(self.chance.randint(1, 3)))
        where = f" WHERE {self.condition(1)}" if self.chance.random() < 0.4 else ""
        having = f" HAVING {self.aggregate()} > 1" if self.chance.random() < 0.4 else ""
        key = self.chance.choice(["", "", "a", "s", "p", "x"])
        by = f"u, {key}" if key else "u"
        return f"SELECT {by}, {made} FROM {source}{where} GROUP BY {by}{having}"

    def spoiled(self, text: str) -> str:
        """The query with something that would let one user's rows change another's."""
        self.unsafe = True
        plain = f"SELECT u, a FROM ({text}) AS q" if " AS t0" not in text else f"SELECT u, t0 AS a FROM ({text}) AS q"
        return self.chance.choice(
            [
                f"{plain} LIMIT 3", f"{plain} ORDER BY a", f"{plain} WHERE a > (SELECT AVG(a) FROM sales)", f"{plain} WHERE random() > 0.5",
                f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT a, u FROM ({text}) AS q) AS r", f"SELECT u, COUNT(*) OVER () AS n FROM ({text}) AS q",
                f"SELECT s, COUNT(*) AS n FROM ({text}) AS q GROUP BY s", f"SELECT MAX(u) AS u FROM ({text}) AS q", f"{plain} TABLESAMPLE 50%",
                f"{plain} UNION ALL SELECT u, a FROM sales", f"{plain} WHERE EXISTS (SELECT 1 FROM sales)",
                f"{plain} OFFSET 2", f"{plain} WHERE a IN (SELECT a FROM sales WHERE p)", f"{plain} WHERE u IN (SELECT a FROM sales)",
                f"{plain} WHERE u IN (SELECT u FROM sales LIMIT 1)", f"{plain} WHERE u IN (SELECT MAX(u) FROM sales)", f"{plain} QUALIFY ROW_NUMBER() OVER (ORDER BY a) < 3", f"SELECT s AS u FROM ({text}) AS q",
            ]
        )  # fmt: skip

    def query(self) -> str:
        """A query over ``sales``, possibly in steps, joined and summed up."""
        self.unsafe = False
        text = self.rows("sales")
        if self.chance.random() < 0.3:
            text = f"WITH w AS ({text}) {self.rows('w').replace(' AS n', ' AS m')}"
        elif self.chance.random() < 0.3:
            text = f"SELECT u, a, x, s, p, big FROM ({text}) AS q JOIN (SELECT u, MAX(size) AS big FROM homes GROUP BY u) AS h USING (u)"
        if self.chance.random() < 0.5 and not text.startswith("WITH"):
            text = self.per_user(f"({text}) AS q")
        return self.spoiled(text) if self.chance.random() < 0.3 and not text.startswith("WITH") else text


def shown(value: Any) -> object:
    """A value, as far as two ways to compute it agree: sums of doubles in another order differ in their last digits."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    number = float(value)
    return None if math.isnan(number) else float(f"{number:.9g}") + 0.0


def in_duckdb(text: str) -> Counter[str]:
    connection = duckdb.connect()
    connection.register("sales", SALES)
    connection.register("homes", HOMES)
    found = connection.execute(text)
    names = [column[0] for column in found.description]
    order = sorted(range(len(names)), key=lambda at: names[at])
    return Counter(repr([(names[at], shown(row[at])) for at in order]) for row in found.fetchall())


def viewed(text: str, sales: eh.Table, homes: eh.Table) -> eh.Table:
    return read_query(text, lambda name: {"sales": sales, "homes": homes}[name])


def test_random_queries_keep_users_apart_or_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    writer, accepted, refused = Writer(random.Random(5)), 0, 0
    for _each in range(MANY):
        text = writer.query()
        sales, homes = (eh.read(rows, user="u") for rows in (SALES, HOMES))
        with monkeypatch.context() as watched:
            for name in ("evaluate", "run", "store"):
                watched.setattr(type(sales.engine), name, lambda *_given: pytest.fail("something was read"))
            try:
                view: eh.Table | str = viewed(text, sales, homes)
            except eh.EvenhandError as refusal:
                view = str(refusal)
        assert isinstance(view, str) == writer.unsafe, (text, view)
        if isinstance(view, str):
            refused += 1
            assert len(view) > 40, "a refusal says why"
            continue
        accepted += 1
        rows = view.engine.evaluate(view.expression).to_pylist()
        found = Counter(repr([(name, shown(row[name])) for name in sorted(row)]) for row in rows)
        assert found == in_duckdb(text), text
        build = partial(viewed, text)
        assert not mixed_up(build, SALES, HOMES, partial(eh.read, user="u")), text
    assert accepted > MANY / 3
    assert refused
