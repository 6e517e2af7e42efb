"""A table with a user column, on any engine. The only room that touches engines."""

from evenhand.tables.grid import Bounds, Grid, parse_bounds
from evenhand.tables.reading import read
from evenhand.tables.secret import Secret
from evenhand.tables.table import Table

__all__ = ["Bounds", "Grid", "Secret", "Table", "parse_bounds", "read"]
