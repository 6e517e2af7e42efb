"""``evenhand describe``: a file in which to state what is known about the columns of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.apps import options
from evenhand.apps.options import hidden_password, open_table
from evenhand.guarantee import UsageError
from evenhand.tables.columns import template

HELP = """Write a TOML file in which to state what is publicly known about the columns of a table: bounds, keys, units.

It is made from the schema; no row is read. With it, questions need neither bounds nor keys: name it with --columns, or put it
beside the table under its name (ratings.toml for ratings.parquet).
"""

EXAMPLES = """Example:

evenhand describe ratings.parquet --user userId --out ratings.toml
"""


def describe(
    source: options.Source,
    user: options.User,
    table: options.TableName = None,
    columns: Annotated[str | None, typer.Option(help="The columns of a JSON file: a,b,c.")] = None,
    types: options.Types = None,
    engine: options.EngineName = None,
    out: Annotated[Path | None, typer.Option(help="Where to write it; printed if left out.")] = None,
) -> None:
    """Write a template for facts about columns (the help text is `HELP`)."""
    if out is not None and out.exists():
        raise UsageError(f"--out {out}: there is such a file already, and nothing is overwritten; give another path.")
    text = template(open_table(source, user, table, columns, engine=engine, types=types), hidden_password(source))
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {out} can't be written: {error.strerror}; give a writable path.") from None
