"""A table with a user column, on any engine. The only room that touches engines."""

from evenhand.tables.columns import Column
from evenhand.tables.grid import Bounds, Grid, OpenBounds, parse_bounds, parse_open_bounds
from evenhand.tables.parts import Part, read_part
from evenhand.tables.public import PublicTable, read_public
from evenhand.tables.reading import read
from evenhand.tables.secret import Secret
from evenhand.tables.table import Table

__all__ = [
    "Bounds",
    "Column",
    "Grid",
    "OpenBounds",
    "Part",
    "PublicTable",
    "Secret",
    "Table",
    "parse_bounds",
    "parse_open_bounds",
    "read",
    "read_part",
    "read_public",
]
