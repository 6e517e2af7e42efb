"""``evenhand release``: one statistic from one table, debited from a ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.apps.console import check_writable, parse_list, parse_open_pair, progress, show_json
from evenhand.bounding import Auto, Strategy, named, offered_names, same_name
from evenhand.guarantee import UsageError, parse_delta, parse_epsilon, suggest
from evenhand.ledger.ledger import LARGEST_TOTAL
from evenhand.pages.release import release_page
from evenhand.statistics import STATISTICS, Statistic, Sum
from evenhand.tables import parse_open_bounds

if TYPE_CHECKING:
    import evenhand as eh

HELP = """Release one statistic about people.

The ledger is debited before the noise is drawn. A ledger that does not exist yet is created with the total --budget,
by default this release's epsilon, so that nothing more can be spent by accident.

Exit codes: 0 released, 2 bad usage, 3 budget refused, 4 data unreadable.
"""

EXAMPLES = """Examples:

evenhand release mean ratings.parquet --user userId --value rating --bounds 0.5:5 --epsilon 0.2 --ledger budget.db

evenhand release count ratings.csv --user userId --epsilon 0.1 --ledger budget.db --budget 1 --json

evenhand release mean ratings.csv --user userId --value rating --bounds 0.5:5 --by genre --keys drama,comedy
--epsilon 0.5 --ledger budget.db

evenhand release count ratings.csv --user userId --by movieId --epsilon 0.5 --delta 1e-6 --ledger budget.db

evenhand release quantiles ratings.csv --user userId --value rating --bounds 0.5:5 --quantiles 0.5,0.9
--epsilon 0.5 --ledger budget.db

evenhand release per_user_mean sales.parquet --user customer --value price --of total --bounds 0:1000
--epsilon 0.5 --ledger budget.db

evenhand release ratio visits.parquet --user visitor --numerator sum:clicks:0:50 --denominator users --epsilon 0.5
--ledger budget.db

evenhand release top ratings.csv --user userId --value movieId --k 10 --epsilon 0.5 --delta 1e-6 --ledger budget.db

evenhand release sum 'logs/*.parquet' --user account,device --value minutes --bounds 0:600 --bounding total-cap:500
--epsilon 1 --engine spark --ledger budget.db
"""


def release(
    statistic: Annotated[str, typer.Argument(help="One of: " + ", ".join(STATISTICS) + ".")],
    source: Annotated[str, typer.Argument(help="A path or glob of Parquet, CSV or JSON files.")],
    user: Annotated[str, typer.Option(help="The column (or columns, a,b) that name a person.")],
    epsilon: Annotated[str, typer.Option(help="How much of the budget to spend, such as 0.2.")],
    ledger: Annotated[str, typer.Option(help="The budget: a SQLite file, or postgresql://...")],
    value: Annotated[str | None, typer.Option(help="The column (or columns, a,b) that the statistic is of.")] = None,
    bounds: Annotated[
        str | None, typer.Option(help="LOW:HIGH for one value, or LOW: or :HIGH; found privately where left out.")
    ] = None,
    quantiles: Annotated[str, typer.Option(help="Which quantiles: numbers between 0 and 1.")] = "0.5",
    edges: Annotated[
        str | None, typer.Option(help="Edges of a histogram: 0,1,2,5; found privately if left out.")
    ] = None,
    of: Annotated[
        str | None, typer.Option(help="A per_user_mean of each user's mean or total; a top of users or rows.")
    ] = None,
    numerator: Annotated[
        str | None, typer.Option(help="Of a ratio: count, users or sum:COLUMN:LOW:HIGH; bounds may be left out.")
    ] = None,
    denominator: Annotated[str | None, typer.Option(help="The same, below the line.")] = None,
    k: Annotated[int, typer.Option("--k", help="For top: how many groups.")] = 10,
    values_per_user: Annotated[
        int | None, typer.Option(help="For distinct: how many values one user may support; chosen unless given.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Group by this column (or columns, a,b).")] = None,
    keys: Annotated[
        str | None,
        typer.Option(help="Public groups: a,b,c, or col=a,b;other=x,y for several columns, or @FILE, one per line."),
    ] = None,
    other: Annotated[str | None, typer.Option(help="A label for one more group that holds all other rows.")] = None,
    groups_per_user: Annotated[
        int | None, typer.Option(help="Without --keys: in how many groups one user may count.")
    ] = None,
    bounding: Annotated[
        str, typer.Option(help="auto, or STRATEGY:BOUND such as smooth-weights:100 or total-cap:500.")
    ] = "auto",
    delta: Annotated[str, typer.Option(help="The δ to spend; needed to select groups without --keys.")] = "0",
    protects: Annotated[str, typer.Option(help="presence, or values (row counts are public).")] = "presence",
    public: Annotated[str | None, typer.Option(help="Columns that are public with --protects values: a,b.")] = None,
    population: Annotated[str | None, typer.Option(help="A name for the people, if tables share a ledger.")] = None,
    columns: Annotated[str | None, typer.Option(help="The columns of a JSON file: a,b,c.")] = None,
    budget: Annotated[str | None, typer.Option(help="Total epsilon of a ledger that does not exist yet.")] = None,
    budget_delta: Annotated[str | None, typer.Option(help="Total delta of a ledger that does not exist yet.")] = None,
    engine: Annotated[str | None, typer.Option(help="duckdb (default) or spark.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what it would cost; spend nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the release as a small HTML page.")] = None,
) -> None:
    """Release one statistic about people (the help text is `HELP`)."""
    import evenhand as eh
    from evenhand.session import Drafts

    if statistic not in STATISTICS:
        raise UsageError(
            f"{statistic!r} is not a statistic; expected one of {', '.join(STATISTICS)}."
            f"{suggest(statistic, STATISTICS)}"
        )
    kind = STATISTICS[statistic]
    parse_epsilon(epsilon)
    parse_delta(delta)
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "bounding": parse_strategy(bounding)}
    given = {"value": value, "bounds": bounds, "quantiles": quantiles, "edges": edges, "of": of}
    options |= _parameters(
        kind,
        {**given, "numerator": numerator, "denominator": denominator},
        {"k": k, "values_per_user": values_per_user},
    )
    if kind.has_groups and by is not None:
        raise UsageError(f"--by with {statistic}: the column that names its groups is --value; leave --by out.")
    if kind.has_groups:
        options |= {"keys": parse_key_option(keys, parse_list(value)), "groups_per_user": groups_per_user}
    elif by is not None:
        group_columns = parse_list(by)
        options |= {"by": group_columns, "keys": parse_key_option(keys, group_columns), "other": other}
        if kind.selects_keys:
            options["groups_per_user"] = groups_per_user
    elif keys is not None:
        raise UsageError("--keys without --by: which column are these the keys of? For example --by genre.")
    if html is not None:
        check_writable(html, "html")
    with progress(f"Reading {source}"):
        table = eh.read(
            source, parse_list(user), protects=protects, public=parse_list(public), population=population, engine=engine,
            columns=parse_list(columns) or None,
        )  # fmt: skip
    # Everything that can be wrong is found here, before a ledger file is made.
    draft = getattr(Drafts(table), statistic)(**options)
    if preview and not _exists(ledger):
        result = draft.preview(None)
        show_json(result.to_dict()) if as_json else print(result)
        return
    book = open_ledger(ledger, epsilon, delta, budget, budget_delta)
    with progress(f"Computing the {statistic}"):
        result = draft.preview(book) if preview else draft.release(book)
    if as_json:
        show_json({**result.to_dict(), "ledger": ledger_facts(book)})
    else:
        print(result)
        print(f"  {'ledger':<16} {book.remaining} left of {book.total} in {book.location}")
    if html is not None and not preview:
        html.write_text(release_page(result), encoding="utf-8")


def open_ledger(location: str, epsilon: str, delta: str, budget: str | None, budget_delta: str | None) -> eh.Ledger:
    """Open the ledger, or create it with the given total."""
    import evenhand as eh

    if budget is None and _exists(location):
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
        return Auto(share=_numbers(bound, "bounding")[0]) if bound else Auto()
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


def _parameters(kind: type[Statistic], given: dict[str, str | None], plain: dict[str, Any]) -> dict[str, Any]:
    """The options that the statistic has parameters for; ``plain`` ones as they are."""
    own = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    parameters: dict[str, Any] = {name: value for name, value in plain.items() if name in own}
    if "column" in own:
        several = parse_list(given["value"])
        if not several:
            raise UsageError(f"--value is missing: which column is the {kind.name} of? For example --value rating.")
        parameters["column"] = several[0] if len(several) == 1 else several
    if "bounds" in own:
        parameters["bounds"] = parse_open_bounds(parse_open_pair(given["bounds"], "bounds"))
    if "quantiles" in own:
        parameters["quantiles"] = parse_list(given["quantiles"])
    if "edges" in own:
        parameters["edges"] = None if given["edges"] is None else _numbers(given["edges"], "edges")
    if "of" in own and given["of"] is not None:
        parameters["of"] = given["of"]
    for part in {"numerator", "denominator"} & own:
        parameters[part] = parse_part(given[part], part)
    return parameters


def parse_part(text: str | None, option: str) -> Statistic:
    """Read ``count``, ``users`` or ``sum:COLUMN:LOW:HIGH``, where either end, or both with their colons, may be left out.

    A column's own name may hold colons if both ends are given.
    """
    name, _, rest = (text or "").partition(":")
    column, _, ends = rest.rpartition(":")
    column, _, low = column.rpartition(":")
    if name in ("count", "users") and not rest:
        return STATISTICS[name]()
    if name == "sum" and rest and ":" not in rest:
        return Sum(rest)
    if name != "sum" or not column:
        raise UsageError(
            f"--{option} {text or ''}: expected count, users or sum:COLUMN:LOW:HIGH, such as --{option} sum:clicks:0:50."
        )
    return Sum(column, parse_open_bounds(parse_open_pair(f"{low}:{ends}", option), option))


def _numbers(text: str | None, option: str) -> list[float]:
    try:
        return [float(item) for item in parse_list(text)] or [float("nan")]
    except ValueError:
        raise UsageError(f"--{option} {text!r}: expected numbers separated by commas.") from None


def _exists(location: str) -> bool:
    return "://" in location or (os.path.exists(location) and os.path.getsize(location) > 0)
