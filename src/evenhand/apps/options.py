"""What the commands that ask about a table share: which table, who pays, and what becomes of the answer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.apps.console import AsJson, check_writable, parse_list, parse_open_pair, progress, show_json
from evenhand.bounding import Auto, Strategy, named, offered_names, same_name
from evenhand.guarantee import UsageError, parse_delta, parse_epsilon, suggest
from evenhand.ledger.events import Asked
from evenhand.ledger.ledger import LARGEST_TOTAL
from evenhand.pages.release import release_page
from evenhand.statistics import STATISTICS, Draft, Preview, Statistic
from evenhand.tables import parse_open_bounds

if TYPE_CHECKING:
    import evenhand as eh

Source = Annotated[
    str,
    typer.Argument(help="A path or glob of Parquet, CSV or JSON files; with --table a DuckDB file or postgresql://..."),
]
User = Annotated[str, typer.Option(help="The column (or columns, a,b) that name a person.")]
TableName = Annotated[
    str | None, typer.Option("--table", help="Which table of a database, or a SELECT over its tables.")
]
Types = Annotated[
    str | None,
    typer.Option(
        help="Types of the columns of a CSV or JSON file: day=date,amount=float (also int, bool, timestamp, 'date %d/%m/%Y'); or a public sample, SAMPLE.csv."
    ),
]
EngineName = Annotated[str | None, typer.Option("--engine", help="duckdb (default) or spark.")]


@dataclass(frozen=True)
class ReleaseOptions:
    """What every command that asks about a table takes: which rows and groups, who pays, and what becomes of the answer.

    The fields are options of the command line (`takes_release_options`), in the order in which help lists them.
    """

    source: Source
    user: User
    epsilon: Annotated[str, typer.Option(help="How much of the budget to spend, such as 0.2.")]
    ledger: Annotated[str, typer.Option(help="The budget: a SQLite file, or postgresql://...")]
    table: TableName = None
    join: Annotated[
        list[str] | None,
        typer.Option(
            help="A public table beside the rows: FILE:COLUMN (or columns, a,b), or FILE:COLUMN:N where N of its rows may share a key. May be repeated."
        ),
    ] = None
    derive: Annotated[
        list[str] | None,
        typer.Option(
            help="One more column, NAME=EXPRESSION as SQL: 'week=date_trunc(''week'', day)'. May be repeated."
        ),
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only rows for which this is true, as SQL: 'amount > 0'. May be repeated."),
    ] = None
    by: Annotated[str | None, typer.Option(help="Group by this column (or columns, a,b).")] = None
    keys: Annotated[
        str | None,
        typer.Option(help="Public groups: a,b,c, or col=a,b;other=x,y for several columns, or @FILE, one per line."),
    ] = None
    other: Annotated[str | None, typer.Option(help="A label for one more group that holds all other rows.")] = None
    groups_per_user: Annotated[
        int | None, typer.Option(help="Without --keys: in how many groups one user may count.")
    ] = None
    bounding: Annotated[
        str, typer.Option(help="auto, or STRATEGY:BOUND such as smooth-weights:100 or total-cap:500.")
    ] = "auto"
    delta: Annotated[str, typer.Option(help="The δ to spend; needed to select groups without --keys.")] = "0"
    protects: Annotated[str, typer.Option(help="presence, or values (row counts are public).")] = "presence"
    public: Annotated[str | None, typer.Option(help="Columns that are public with --protects values: a,b.")] = None
    population: Annotated[str | None, typer.Option(help="A name for the people, if tables share a ledger.")] = None
    columns: Annotated[
        str | None,
        typer.Option(
            help="FACTS.toml: what is known about columns (evenhand describe); or the columns of a JSON file: a,b,c."
        ),
    ] = None
    types: Types = None
    budget: Annotated[str | None, typer.Option(help="Total epsilon of a ledger that does not exist yet.")] = None
    budget_delta: Annotated[str | None, typer.Option(help="Total delta of a ledger that does not exist yet.")] = None
    engine: EngineName = None
    preview: Annotated[bool, typer.Option("--preview", help="Only say what it would cost; spend nothing.")] = False
    as_json: AsJson = False
    html: Annotated[Path | None, typer.Option(help="Also write the release as a small HTML page.")] = None
    csv: Annotated[Path | None, typer.Option(help="Also write the values with their intervals as CSV.")] = None
    who: Annotated[str | None, typer.Option(help="Who asks, for the ledger; the name of the account unless given.")] = (
        None
    )
    note: Annotated[str | None, typer.Option(help="One line for the ledger, such as 'nightly, 2026-11-16'.")] = None
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Also say how the answer was made: what its interval covers, the bound, the guarantee."
        ),
    ] = False

    def check(self) -> None:
        """Refuse what can't be paid or written, before anything is read."""
        parse_epsilon(self.epsilon)
        parse_delta(self.delta)
        Asked(self.who, note=self.note)
        for path, option in ((self.html, "html"), (self.csv, "csv")):
            if path is not None:
                check_writable(path, option)

    def rows(self) -> eh.Table:
        """The table beside what ``--join`` names, with the columns that ``--derive`` makes, each from those before it, then the rows that ``--where`` keeps."""
        table = open_table(
            self.source,
            self.user,
            self.table,
            self.columns,
            self.protects,
            self.public,
            self.population,
            self.engine,
            self.types,
        )
        for text in self.join or []:
            table = _joined(table, text)
        for text in self.derive or []:
            name, equals, expression = text.partition("=")
            if not equals or not name.strip() or not expression.strip():
                raise UsageError(f"--derive {text!r}: expected NAME=EXPRESSION, such as --derive 'large=amount > 100'.")
            table = table.derive(**{name.strip(): expression})
        return table.where(*self.where) if self.where else table

    def groups(self) -> dict[str, Any]:
        """``by=``, ``keys=`` and ``other=`` from their options."""
        if self.by is None:
            if self.keys is not None:
                raise UsageError("--keys without --by: which column are these the keys of? For example --by genre.")
            return {}
        columns = parse_list(self.by)
        return {"by": columns, "keys": parse_key_option(self.keys, columns), "other": self.other}

    def settle(self, draft: Draft) -> None:
        """Pay for a checked draft, release it and show it; or only preview it."""
        if self.preview and not exists(self.ledger):
            previewed = draft.preview(None)
            show_json(previewed.to_dict()) if self.as_json else print(previewed)
            return
        book = open_ledger(self.ledger, self.epsilon, self.delta, self.budget, self.budget_delta)
        book.who, book.note = self.who or book.who, self.note
        with progress(f"Computing the {draft.statistic}"):
            result = draft.preview(book) if self.preview else draft.release(book)
        # Files first: what was paid for must not be lost because nobody reads on (`| head`).
        if self.html is not None and not isinstance(result, Preview):
            self.html.write_text(release_page(result), encoding="utf-8")
        if self.csv is not None and not isinstance(result, Preview):
            result.to_csv(self.csv)
        if self.as_json:
            show_json({**result.to_dict(), "ledger": ledger_facts(book)})
        else:
            short = result if isinstance(result, Preview) else result.text("--explain")
            print(result.explain() if self.explain and not isinstance(result, Preview) else short)
            print(f"  {'ledger':<16} {book.remaining} left of {book.total} in {book.location}")


_SHARED = signature(ReleaseOptions, eval_str=True).parameters


def takes_release_options(
    own: Mapping[str, Parameter] | None = None, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of `ReleaseOptions`, but for those ``without``; it gets them all as ``asked``.

    ``own`` options, and those of its signature, come before the ones about groups, or in place of the field that is called so.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = signature(command, eval_str=True).parameters.items()
        mine = {name: one for name, one in declared if one.kind is not Parameter.VAR_KEYWORD} | dict(own or {})
        names, order = list(mine), list(_SHARED)
        place, groups = names.index("asked"), order.index("by")
        order[groups:groups] = [name for name in names[place + 1 :] if name not in _SHARED]
        options = {**_SHARED, **mine}
        chosen = [
            options[name].replace(kind=Parameter.KEYWORD_ONLY)
            for name in [*names[:place], *order]
            if name not in without
        ]

        @wraps(command)
        def run(**given: Any) -> None:  # noqa: ANN401 - options of any type
            asked = ReleaseOptions(**{name: value for name, value in given.items() if name in _SHARED})
            command(asked=asked, **{name: value for name, value in given.items() if name in mine})

        run.__signature__ = Signature(sorted(chosen, key=lambda one: one.default is not Parameter.empty))  # type: ignore[attr-defined]
        return run

    return decorate


def _fields(name: str) -> set[str]:
    return {field.name for field in fields(STATISTICS[name])}  # type: ignore[arg-type]


TOGETHER = tuple(name for name in STATISTICS if not _fields(name) or "bounds" in _fields(name))
"""The statistics that a column and its bounds say all about."""


def open_table(
    source: str,
    user: str,
    table: str | None,
    columns: str | None,
    protects: str = "presence",
    public: str | None = None,
    population: str | None = None,
    engine: str | None = None,
    types: str | None = None,
) -> eh.Table:
    """The table that the options name."""
    import evenhand as eh

    select = re.match(r"\s*(SELECT|WITH)\s", table or "", re.IGNORECASE) is not None
    facts = columns if columns is not None and columns.endswith(".toml") else parse_list(columns) or None
    with progress(f"Reading {hidden_password(source)}"):
        return eh.read(
            source, parse_list(user), table=None if select else table, query=table if select else None, protects=protects, public=parse_list(public), population=population,
            engine=engine, columns=facts, types=parse_types_option(types),
        )  # fmt: skip


def parse_types_option(text: str | None) -> dict[str, str] | str | None:
    """Read ``day=date,amount=float``, or the path of a public sample."""
    if text is None or ("=" not in text and text.lower().endswith((".csv", ".parquet"))):
        return text
    pairs = [pair.partition("=") for pair in parse_list(text)]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        raise UsageError(
            f"--types {text!r}: expected NAME=TYPE,..., such as --types day=date,amount=float, or a public sample, SAMPLE.csv."
        )
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def _joined(table: eh.Table, text: str) -> eh.Table:
    import evenhand as eh

    # From the right: a path may hold colons.
    found = re.fullmatch(r"(?P<file>.+?\.(?:parquet|csv)):(?P<on>[^:]+)(?::(?P<most>[0-9]+))?", text, re.IGNORECASE)
    if found is None:
        raise UsageError(
            f"--join {text!r}: expected FILE:COLUMN or FILE:COLUMN:N, a public Parquet or CSV file, the column that both have, and how many of its "
            "rows may share a key, such as --join products.parquet:product_id."
        )
    most = int(found["most"] or 1)
    return table.join(eh.read_public(found["file"]), on=parse_list(found["on"]), fan_out=most)


def hidden_password(source: str) -> str:
    """A source as it may be shown: of a URL only the part after what may hold a password."""
    scheme, found, rest = source.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else source


def open_ledger(location: str, epsilon: str, delta: str, budget: str | None, budget_delta: str | None) -> eh.Ledger:
    """Open the ledger, or create it with the given total."""
    import evenhand as eh

    if budget is None and exists(location):
        try:
            return eh.Ledger(location)
        except UsageError:
            if "://" not in location:
                raise  # on a server this means an empty database: make the ledger there, as for a new file
    total = epsilon if budget is None else parse_epsilon(budget, "--budget", LARGEST_TOTAL)
    return eh.Ledger(location, epsilon=total, delta=budget_delta if budget_delta is not None else delta)


def ledger_facts(book: eh.Ledger) -> dict[str, Any]:
    """What a program wants to know about the ledger after a release."""
    amounts = {"total": book.total, "spent": book.spent, "remaining": book.remaining}
    return {
        "location": book.location,
        **{name: {"epsilon": float(amount.epsilon), "delta": float(amount.delta)} for name, amount in amounts.items()},
    }


def parse_strategy(text: str) -> Strategy | Auto:
    """Read ``auto``, ``auto:SHARE`` or ``strategy:bound``."""
    name, _, bound = text.partition(":")
    if name == "auto":
        return Auto(share=numbers(bound, "bounding")[0]) if bound else Auto()
    offered = offered_names()
    if not any(same_name(name, known) for known in offered):
        raise UsageError(
            f"--bounding {text!r} is not known; expected auto, or one of {', '.join(offered)} with a bound, such as "
            f"smooth-weights:100.{suggest(name, offered)}"
        )
    strategy: Callable[..., Strategy] = named(name)
    return strategy(bound) if bound else strategy()


def parse_key_option(
    text: str | None, columns: list[str]
) -> list[str] | list[tuple[str, ...]] | dict[str, list[str]] | None:
    """Read ``a,b``, ``col=a,b;other=x,y`` or ``@FILE``."""
    if text is None:
        return None
    if text.startswith("@"):
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise UsageError(f"--keys {text}: the file can't be read ({error.strerror}).") from None
        rows = [tuple(line.split("\t")) for line in lines if line]
        return [row[0] for row in rows] if len(columns) == 1 else rows
    if len(columns) == 1 and "=" not in text:
        return parse_list(text)
    pairs = [pair.partition("=") for pair in text.split(";")]
    return {name.strip(): parse_list(values) for name, _, values in pairs}


def parse_statistic(text: str | None, option: str, names: Sequence[str] = TOGETHER) -> Statistic:
    """Read ``count``, ``mean:COLUMN`` or ``mean:COLUMN:LOW:HIGH``, where either end may be left out.

    A column's own name may hold colons if both ends are given.
    """
    name, _, rest = (text or "").partition(":")
    column, _, high = rest.rpartition(":")
    column, _, low = column.rpartition(":")
    kind: Callable[..., Statistic] | None = STATISTICS[name] if name in names else None
    if kind is not None and bool(rest) == ("column" in _fields(name)):
        if ":" not in rest:
            return kind(rest) if rest else kind()
        if column:
            return kind(column, bounds=parse_open_bounds(parse_open_pair(f"{low}:{high}", option), option))
    example = "sum:clicks:0:50" if "sum" in names else names[0]
    raise UsageError(
        f"--{option} {text or ''}: expected one of {', '.join(names)}, with its column and bounds where it has them, such as {example}."
        f"{suggest(name, names)}"
    )


def numbers(text: str | None, option: str) -> list[float]:
    """Read ``1,2,5``."""
    try:
        return [float(item) for item in parse_list(text)] or [float("nan")]
    except ValueError:
        raise UsageError(f"--{option} {text!r}: expected numbers separated by commas.") from None


def exists(location: str) -> bool:
    """Whether there may be a ledger already."""
    return "://" in location or (os.path.exists(location) and os.path.getsize(location) > 0)
