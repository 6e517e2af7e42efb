"""Which DuckDB queries give the same rows each time, told from their syntax trees.

The tree is DuckDB's own, with the views and macros that a query names looked up. (A query plan would not do: DuckDB makes
plans out of statistics, so whether a function appears in one depends on the rows.)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.tables.engines.stable import unstable

Query = Callable[[str], list[tuple[Any, ...]]]
Json = dict[str, Any] | list[Any] | str | float | None

_TIMES = {"current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"}
_ORDERS = {
    "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "first", "last", "any_value", "arbitrary",
    "arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "arg_max_null", "arg_min_null", "mode", "list", "array_agg",
    "string_agg", "group_concat", "listagg", "reservoir_quantile", "approx_quantile", "approx_top_k",
}  # fmt: skip
"""Functions whose value depends on the order in which rows happen to be read, where there are ties or no order."""
_LIMITS = {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"}
_OBJECTS = ("python_", "pandas_", "arrow_", "polars_", "parquet_")
_ORDER = "the order in which rows happen to be read"


def refuse_unstable_sql(sql: str, query: Query) -> None:
    """Refuse a query whose rows are not determined by what is stored, or that reads a file twice.

    Args:
        sql: the query.
        query: runs a statement on its connection.
    """
    tree = _parse(sql, query)
    if tree is None:
        raise unstable("a statement that can't be checked")
    changing = query("SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability != 'CONSISTENT'")
    macros = query(
        "SELECT lower(function_name), macro_definition FROM duckdb_functions() "
        "WHERE function_type LIKE '%macro' AND NOT internal"
    )
    views = query("SELECT lower(view_name), lower(schema_name), sql FROM duckdb_views() WHERE NOT internal")
    tables = query(
        "SELECT lower(table_name), d.type FROM duckdb_tables() JOIN duckdb_databases() d USING (database_name)"
    )
    _Reader(query, {name for (name,) in changing}, macros, views, dict(tables)).read(tree, {})


@dataclass
class _Reader:
    """Walks a syntax tree and everything that it names. Names are DuckDB's: letter case does not count."""

    query: Query
    changing: set[str]
    macros: list[tuple[Any, ...]]
    views: list[tuple[Any, ...]]
    tables: Mapping[str, str]
    files: Counter[str] = field(default_factory=Counter)
    inside: set[str] = field(default_factory=set)

    def read(self, node: Json, named: Mapping[str, Json]) -> None:
        """Look at a node; ``named`` holds the common table expressions in scope."""
        if isinstance(node, list):
            for each in node:
                self.read(each, named)
            return
        if not isinstance(node, dict):
            return
        for entry in (node.get("cte_map") or {}).get("map", ()):
            named = {**named, entry["key"].lower(): entry["value"]["query_node"]}
        if node.get("sample"):
            raise unstable("a random sample")
        if node.get("type") in _LIMITS:
            raise unstable("a limited number of rows")
        if node.get("ref_type") == "POSITIONAL" or node.get("distinct_on_targets"):
            raise unstable(_ORDER)
        self._functions(node)
        if node.get("type") == "BASE_TABLE":
            self._table(node, named)
        elif node.get("type") == "TABLE_FUNCTION":
            self._table_function(node["function"])
        for key, each in node.items():
            if key != "cte_map":  # read where it is used, as often as it is used
                self.read(each, named)

    def _functions(self, node: dict[str, Any]) -> None:
        kind, name = node.get("class"), str(node.get("function_name", "")).lower()
        if kind == "COLUMN_REF":
            column = str(node["column_names"][-1]).lower()
            if column in _TIMES:
                raise unstable("the current time")
            if column == "rowid":
                raise unstable(_ORDER)
        frame = f"{node.get('start')} {node.get('end')}" if kind == "WINDOW" else ""
        if kind in ("FUNCTION", "WINDOW") and (name in _ORDERS or "_ROWS" in frame):
            raise unstable(_ORDER)
        if kind in ("FUNCTION", "WINDOW") and name in self.changing:
            raise unstable(f"{name}(), which gives another value each time")
        if kind == "FUNCTION" and name == "age" and len(node["arguments"]) == 1:
            raise unstable("the current time")
        if kind == "FUNCTION":
            for number, definition in enumerate(text for macro, text in self.macros if macro == name):
                self._named(f"SELECT {definition}", f"macro {name} {number}")

    def _table(self, node: dict[str, Any], named: Mapping[str, Json]) -> None:
        name, schema = node["table_name"].lower(), (node.get("schema_name") or "").lower()
        views = [sql for view, home, sql in self.views if view == name and schema in ("", home)]
        if not schema and not node.get("catalog_name") and name in named:
            self.read(named[name], {key: value for key, value in named.items() if key != name})
        elif views:
            for number, sql in enumerate(views):  # which of them is meant depends on the search path: each must do
                self._named(sql.partition(" AS ")[2].rstrip("; \n"), f"view {name} {number}")
        elif name in self.tables:
            if self.tables[name] != "duckdb":
                raise unstable(f"the table {name!r} of another database, which is not read in one snapshot")
        elif "." in name or "/" in name:
            self._file(name)

    def _table_function(self, function: dict[str, Any]) -> None:
        name = function["function_name"].lower()
        if name.endswith(("_scan", "_query")) and not name.startswith(_OBJECTS):
            raise unstable(f"{name}(), another database that is not read in one snapshot")
        if name.startswith(("read_", "parquet_", "glob")):
            self._file(json.dumps(_without_places(function["arguments"]), sort_keys=True))

    def _file(self, what: str) -> None:
        self.files[what] += 1
        if self.files[what] > 1:
            raise unstable("a file that is read twice")

    def _named(self, sql: str, what: str) -> None:
        if what in self.inside:  # a name that means itself: DuckDB will refuse it
            return
        tree = _parse(sql, self.query)
        if tree is None:
            raise unstable(f"the {what.rpartition(' ')[0]}, which can't be checked")
        self.inside.add(what)
        self.read(tree, {})
        self.inside.discard(what)


def _parse(sql: str, query: Query) -> Json:
    quoted = sql.replace("'", "''")
    tree = json.loads(query(f"SELECT json_serialize_sql('{quoted}')")[0][0])
    return None if tree.get("error") else [statement["node"] for statement in tree["statements"]]


def _without_places(node: Json) -> Json:
    """A tree without the positions in the text, so that equal calls are equal."""
    if isinstance(node, list):
        return [_without_places(each) for each in node]
    if isinstance(node, dict):
        return {key: _without_places(each) for key, each in node.items() if not key.startswith("query_location")}
    return node
