"""Questions in SQL: a SELECT becomes a view of the table and statistics of it, asked in one debit."""

from evenhand.sql.asking import ask_sql, parsed_options
from evenhand.tables.queries.options import Options

__all__ = ["Options", "ask_sql", "parsed_options"]
