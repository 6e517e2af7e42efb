"""``evenhand convert``: CSV or JSON to Parquet, by the holder of the private file."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.apps.console import AsJson, parse_list, progress, show_json

HELP = """Convert CSV or JSON to Parquet, where a malformed value can't affect others.

For the data holder: it reads private files, and what it prints is about single lines. Columns are text, or numbers where
--numbers names them. Records that can't be read are refused, or left out with --drop-malformed.

Exit codes: 0 written, 2 bad usage, 4 data unreadable.
"""

EXAMPLES = """Examples:

evenhand convert ratings.csv ratings.parquet --numbers rating

evenhand convert 'logs/*.jsonl' logs.parquet --columns user,minutes --numbers minutes --json
"""


def convert(
    source: Annotated[str, typer.Argument(help="A path or glob of CSV or JSON files.")],
    target: Annotated[str, typer.Argument(help="The Parquet file to write; it must not exist yet.")],
    numbers: Annotated[str | None, typer.Option(help="Columns that hold numbers: a,b. All others are text.")] = None,
    columns: Annotated[str | None, typer.Option(help="The columns of a JSON file: a,b,c.")] = None,
    quoted_newlines: Annotated[
        bool, typer.Option("--quoted-newlines", help="Quoted fields of a CSV may hold line feeds.")
    ] = False,
    drop_malformed: Annotated[
        bool, typer.Option("--drop-malformed", help="Leave records out that can't be read, and say how many.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Convert CSV or JSON to Parquet (the help text is `HELP`)."""
    from evenhand.tables.convert import to_parquet

    with progress(f"Converting {source}"):
        done = to_parquet(
            source, target, columns=parse_list(columns), numbers=parse_list(numbers), quoted_newlines=quoted_newlines,
            drop_malformed=drop_malformed,
        )  # fmt: skip
    not_numbers = {name: count for name, count in done.not_numbers.items() if count}
    if as_json:
        show_json(
            {"path": target, "rows": done.rows, "columns": done.columns, "malformed": len(done.malformed),
             "not_numbers": not_numbers}
        )  # fmt: skip
        return
    print(f"{done.rows:,} rows in {target}: {', '.join(f'{name} ({kind})' for name, kind in done.columns.items())}")
    if done.malformed:
        print(f"  {len(done.malformed):,} records were left out, the first at {done.malformed[0]}")
    for name, count in not_numbers.items():
        print(f"  {count:,} values of {name} are no numbers and became null")
