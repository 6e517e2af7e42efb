"""``keeper.toml``: what a keeper offers to whom. Everything is checked before the server starts.

deadline = 10                     # seconds after which an answer appears, the same for every question of every analyst
model_deadline = 120              # the same for models
least_epsilon = 1e-4              # the smallest ε that a question may cost
slowness = 1                      # times that this machine takes longer than a usual one: slots of questions are that much longer
accounts = "accounts.db"          # tokens; a SQLite file or postgresql://...
per_minute = 600                  # requests of one account, or of one address without a token
host = "127.0.0.1"
port = 8765
proxies = ["10.0.0.5"]            # optional: the proxy with TLS in front; its headers are believed, nobody else's
connections = 1000                # at a time, in all and by address
connections_by_address = 100

[limits]                          # optional: what DuckDB may take, for all tables that it reads
memory = "8GB"                    # unless given, half of the machine's; tables are copied into it
temporary = "16GB"                # for rows that don't fit; unless given, as much as memory, and no more than half of what is free
folder = "spill"                  # where these are; unless given, a new folder that only this account can read
seconds = 60                      # of one statement; unless given, the longest deadline

[populations.viewers]             # people, and what was promised to them
ledger = "budget.db"
epsilon = 10
delta = 1e-5
per_month = { epsilon = 2 }       # optional: a promise for each month beside the total

[tables.views]
source = "views.parquet"
user = "viewer"
engine = "duckdb"                 # or "spark", with the session that Spark's own settings describe
population = "viewers"
rows = 2_000_000                  # the most that the table will have, publicly known: the time of a question is computed from it
protects = "presence"
description = "One row per film that was watched."

# types = { day = "date" }        # of a CSV, whose columns are text otherwise; or a public sample: types = "sample.csv"

[tables.views.columns.stars]      # what is publicly known: questions then need no bounds and no keys
bounds = [0.5, 5]
unit = "stars"

[[tables.views.part]]             # optional: rows without users that analysts may join in SQL, by these columns alone
name = "scenes"                   # of the same source, unless it says source = "..."; a database has table = "scenes"
source = "scenes.parquet"
on = "view_id"
rows = 9_000_000

[tables.views.views.evening]      # optional: a part of it, offered as "views.evening"
where = "hour >= 18"
derive = { long = "minutes > 90" }

[analysts.ann]
epsilon = 5
delta = 5e-6
per_question = 1
approval_above = 3                # ε in sum without the keeper's approval
tables = ["views"]
immediate = false                 # whether this analyst may see when an answer is ready
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from evenhand.guarantee import EvenhandError, parse_delta, parse_epsilon, plain
from evenhand.ledger import Budget, Ledger
from evenhand.ledger.desk import Desk, Limits
from evenhand.ledger.ledger import LARGEST_TOTAL
from evenhand.ledger.questions import MOST_WAITING
from evenhand.service.accounts import Accounts
from evenhand.service.granted import Analyst, Offered
from evenhand.service.keeper import LEAST_EPSILON, Keeper
from evenhand.service.listening import NAMES, Listening, listening
from evenhand.service.slots import DECLARED_ROWS
from evenhand.service.toml_lines import Section, read_toml
from evenhand.tables import Part, Table, read, read_part
from evenhand.tables.engines.copied import copied
from evenhand.tables.engines.duckdb_limits import free_disk, limit_duckdb, machine_memory, size

log = logging.getLogger("evenhand.keeper")

MOST_ROWS = 10**12
_PRICE_WORKERS = 2
"""Processes that work prices out."""
_SHORTEST = 0.01
"""Seconds in which no answer can be there, so that a deadline below is a mistake."""
_NUMBER = (int, float, str)
_AMOUNT = "a number above 0, such as 1 or '0.5'"


@dataclass(frozen=True)
class Configured:
    """What a file describes, opened."""

    keeper: Keeper
    accounts: Accounts
    listening: Listening
    per_minute: int
    readable: tuple[str, ...] = ()

    def warn(self) -> None:
        """Say in the log which files of the keeper's other users of this machine may read."""
        for name in self.readable:
            log.warning("other users of this machine may read a file: chmod 600", extra={"file": name})


def load(path: Path) -> Configured:
    """Read a keeper's file and open what it names; nothing is served if anything is wrong."""
    file = read_toml(path)
    file.only(
        "deadline", "model_deadline", "least_epsilon", "slowness", "accounts", "per_minute", "limits", "populations", "tables", "analysts", *NAMES
    )  # fmt: skip
    folder = path.resolve().parent
    deadlines = _seconds(file, "deadline", 10), _seconds(file, "model_deadline", 120)
    _refuse_one_for_two(file, folder)
    with private_files():
        desks = {name: _desk(section, folder) for name, section in file.sections("populations").items()}
    if not desks:
        raise file.error(None, "no population is described; expected [populations.NAME] with ledger and epsilon.")
    _limit_duckdb(file.section("limits"), folder, max(deadlines))
    tables: dict[str, Offered] = {}
    for name, section in file.sections("tables").items():
        tables[name] = _table(section, desks, folder)
        for view, described in section.sections("views").items():
            tables[f"{name}.{view}"] = _view(described, tables[name])
    if not tables:
        raise file.error(None, "no table is described; expected [tables.NAME] with source, user and population.")
    analysts = {name: _analyst(section, tables) for name, section in file.sections("analysts").items()}
    accounts = accounts_of(path)[0]
    kept = [path, Path(accounts.location), *(Path(desk.ledger.location) for desk in desks.values())]
    return Configured(
        Keeper(
            tables,
            analysts,
            *deadlines,
            _epsilon(file, "least_epsilon") or LEAST_EPSILON,
            _slowness(file),
            price_workers=_PRICE_WORKERS,
        ),
        accounts,
        listening(file, 8765),
        file.whole("per_minute", 600, 1, 1_000_000),
        tuple(one.name for one in kept if _others_read(one)),
    )


def _seconds(file: Section, name: str, usual: int) -> float:
    given = file.get(name, (int, float), f"seconds, such as {usual}", usual)
    if not _SHORTEST <= given <= 86_400:
        raise file.error(name, f"{name} = {given}: expected seconds, at least {_SHORTEST} and at most a day.")
    return float(given)


def _limit_duckdb(section: Section, folder: Path, longest: float) -> None:
    """Before any table is read. One question must not take the memory of all, nor the connection for longer than anybody waits."""
    section.only("memory", "temporary", "folder", "seconds")
    sized = (int, str)
    memory = section.get("memory", sized, "bytes, or text such as '8GB'", machine_memory() // 2)
    where = section.get("folder", str, "a directory", None)
    place = _private_folder() if where is None else _place(where, folder)
    try:
        usual = min(size(memory, "memory"), free_disk(place) // 2)
        limit_duckdb(
            memory,
            section.get("temporary", sized, "bytes, or text such as '16GB'", usual),
            place,
            section.get("seconds", (int, float), "seconds, such as 60", longest),
        )
    except OSError as error:
        raise section.error("folder", f"folder = {where!r}: {error.strerror}.") from None
    except EvenhandError as error:
        raise section.error(None, str(error)) from None


def _private_folder() -> str:
    """A new folder for this process alone."""
    folder = tempfile.mkdtemp(prefix="evenhand")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _slowness(file: Section) -> float:
    given = file.get("slowness", (int, float), "a factor, such as 1", 1)
    if not 0.01 <= given <= 1000:
        raise file.error(
            "slowness", f"slowness = {given}: expected a factor from 0.01 to 1000; 2 for a machine half as fast."
        )
    return float(given)


def accounts_of(path: Path) -> tuple[Accounts, list[str]]:
    """Who has a token, and who is an analyst; no table and no ledger is opened."""
    file = read_toml(path)
    place = _place(file.get("accounts", str, "a path or a URL", "accounts.db"), path.resolve().parent)
    with private_files():
        return Accounts(place), list(file.sections("analysts"))


@contextmanager
def private_files() -> Iterator[None]:
    """Files that are made within this block can be read by their owner alone: they hold answers before their deadline."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _others_read(path: Path) -> bool:
    """Whether other users of this machine may read a file; what was given to them on purpose stays as it is."""
    try:
        return os.name == "posix" and bool(path.stat().st_mode & 0o077)
    except OSError:  # no file, but a database
        return False


def _refuse_one_for_two(file: Section, folder: Path) -> None:
    """A ledger is about one population, and tokens are kept apart from what they may spend."""
    places = {"accounts": _place(file.get("accounts", str, "a path or a URL", "accounts.db"), folder)}
    for name, section in file.sections("populations").items():
        place = _place(section.get("ledger", str, "the path of a ledger, or postgresql://..."), folder)
        earlier = next((other for other, one in places.items() if one == place), None)
        if earlier == "accounts" and "://" not in place:
            raise section.error("ledger", "this is the file of accounts, too; expected a file for each.")
        if earlier not in (None, "accounts"):
            raise section.error(
                "ledger",
                f"this is the ledger of {earlier!r}, too; expected one for each population: it keeps what was promised to one.",
            )
        places[name] = place


def month() -> str:
    """The present month by the clock, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m")


def _desk(section: Section, folder: Path) -> Desk:
    section.only("ledger", "epsilon", "delta", "per_month")
    place = _place(section.get("ledger", str, "the path of a ledger, or postgresql://..."), folder)
    total, per_month = _budget(section), _per_month(section)
    try:
        return Desk(Ledger(place, total.epsilon, total.delta), per_period=per_month, period=month)
    except EvenhandError as error:
        raise section.error("ledger", str(error)) from None


def _table(section: Section, desks: dict[str, Desk], folder: Path) -> Offered:
    section.only(
        "source",
        "table",
        "engine",
        "user",
        "population",
        "protects",
        "public",
        "description",
        "columns",
        "types",
        "views",
        "rows",
        "part",
    )
    population = section.get("population", str, f"one of {sorted(desks)}")
    if population not in desks:
        raise section.error("population", f"population = {population!r}: expected one of {sorted(desks)}.")
    source = _place(section.get("source", str, "a path or a URL"), folder)
    user = section.get("user", (str, list), "a column name, or several")
    options: dict[str, Any] = {"protects": section.get("protects", str, "presence or values", "presence")}
    options["public"] = section.get("public", list, "a list of column names", [])
    options["table"] = section.get("table", str, "the name of a table of a database", None)
    options["engine"] = section.get("engine", str, "what reads files: duckdb or spark", None)
    if "columns" in section.values:
        options["columns"] = section.get("columns", dict, "a section [tables.NAME.columns.COLUMN] for each column")
    if "types" in section.values:
        types = section.get("types", (str, dict), "a type for each column, or the path of a public sample")
        options["types"] = _place(types, folder) if isinstance(types, str) else types
    try:
        table = read(source, user, population=population, **options)
    except EvenhandError as error:
        raise section.error("engine" if "engine" in section.values else "source", str(error)) from None
    parts: dict[str, Part] = {}
    part_rows = 0
    for item in section.items("part"):
        part = _part(item, section, source, folder)
        if part.name.casefold() in {name.casefold() for name in parts}:
            raise item.error("name", f"name = {part.name!r}: another part has it; expected a name for each.")
        _require_joinable(item, table, parts, part)
        parts[part.name] = part
        part_rows += _rows(item)
    offered = copied(replace(table, parts=parts))
    return Offered(offered, desks[population], section.get("description", str, "text", ""), _rows(section), part_rows)


def _rows(section: Section) -> int:
    rows: int = section.get("rows", int, f"a number of rows, such as {DECLARED_ROWS}", DECLARED_ROWS)
    if not 1 <= rows <= MOST_ROWS:
        raise section.error("rows", f"rows = {rows}: expected how many rows the table may have, from 1 to {MOST_ROWS}.")
    return rows


def _part(section: Section, owner: Section, source: str, folder: Path) -> Part:
    """Rows without users that analysts may join in SQL, by these columns and no others."""
    section.only("name", "source", "table", "on", "columns", "rows")
    name = section.get("name", str, "what the part is called in SQL")
    if not name.isidentifier():
        raise section.error(
            "name", f"name = {name!r}: expected a name as SQL has it, of letters, digits and underscores."
        )
    on = section.get(
        "on", (str, list, dict), "the columns that it is joined by, such as 'order_id' or { id = 'order_id' }"
    )
    own = "source" not in section.values
    options: dict[str, Any] = {
        "table": section.get("table", str, "the name of a table of a database", name if own else None)
    }
    options["engine"] = owner.get("engine", str, "what reads files: duckdb or spark", None)
    if "columns" in section.values:
        options["columns"] = section.get("columns", dict, "a section columns.COLUMN for each column")
    place = source if own else _place(section.get("source", str, "a path or a URL"), folder)
    try:
        return read_part(place, name=name, keys=on, **options)
    except EvenhandError as error:
        raise section.error(None, str(error)) from None


def _require_joinable(section: Section, table: Table, others: Mapping[str, Part], part: Part) -> None:
    """Check that a part can be joined to its table, or to one that is joined to it, before anybody asks: what can't be joined is a mistake."""
    assert part.keys is not None
    found: EvenhandError | None = None
    for start in (table, *(_with(table, other) for other in others.values())):
        if start is None:
            continue
        try:
            start.join(part, on=part.keys)
            return
        except EvenhandError as error:
            found = found or error
    raise section.error("on", str(found))


def _with(table: Table, part: Part) -> Table | None:
    try:
        return table.join(part, on=part.keys)
    except EvenhandError:
        return None


def _view(section: Section, whole: Offered) -> Offered:
    """Columns are derived first, then rows are left out, then users summed up; each with SQL as in `Table`."""
    section.only("derive", "where", "per_user", "select", "description")
    derived = section.get("derive", dict, "names with SQL expressions", {})
    where = section.get("where", (str, list), "a SQL condition, or several", [])
    per_user = section.get("per_user", dict, "names with SQL aggregates", {})
    chosen = section.get("select", list, "a list of column names", [])
    steps: list[tuple[str, object, Callable[[Table], Table]]] = [
        ("derive", derived, lambda table: table.derive(**derived)),
        ("where", where, lambda table: table.where(*([where] if isinstance(where, str) else where))),
        ("per_user", per_user, lambda table: table.per_user(**per_user)),
        ("select", chosen, lambda table: table.select(*chosen)),
    ]
    table = whole.table
    for name, given, step in steps:
        try:
            table = step(table) if given else table
        except EvenhandError as error:
            raise section.error(name, str(error)) from None
    return Offered(table, whole.desk, section.get("description", str, "text", ""), whole.rows, whole.part_rows)


def _analyst(section: Section, tables: dict[str, Offered]) -> Analyst:
    if section.path[-1] in ("keeper", "*"):
        raise section.error(None, f"{section.path[-1]!r} can't be an analyst's name; expected another one.")
    section.only("epsilon", "delta", "per_month", "per_question", "approval_above", "tables", "immediate", "waiting")
    allowed = section.get("tables", list, f"a list of tables among {sorted(tables)}", None)
    for name in allowed or ():
        if name not in tables:
            raise section.error("tables", f"tables has {name!r}: expected some of {sorted(tables)}.")
    waiting = section.get("waiting", int, "a number of questions", MOST_WAITING)
    if waiting < 0:
        raise section.error(
            "waiting", f"waiting = {waiting}: expected how many questions may wait for approval, 0 or more."
        )
    limits = Limits(
        _budget(section),
        _per_month(section),
        _epsilon(section, "per_question"),
        _epsilon(section, "approval_above", zero=True),
        waiting,
    )
    for name, limit in (("per_question", limits.per_question), ("approval_above", limits.unapproved)):
        if limit is not None and limit > limits.total.epsilon:
            raise section.error(
                name,
                f"{name} = {plain(limit)} is more than epsilon = {plain(limits.total.epsilon)}, so it limits nothing; expected a smaller number.",
            )
    immediate = section.get("immediate", bool, "true or false", False)
    return Analyst(limits, None if allowed is None else frozenset(allowed), immediate)


def _budget(section: Section) -> Budget:
    epsilon = _epsilon(section, "epsilon")
    if epsilon is None:
        raise section.error(None, f"epsilon is missing; expected {_AMOUNT}.")
    try:
        return Budget(epsilon, parse_delta(section.get("delta", _NUMBER, "a number from 0 to 1", 0)))
    except EvenhandError:
        raise section.error("delta", f"delta = {section.values['delta']!r}: expected a number from 0 to 1.") from None


def _per_month(section: Section) -> Budget | None:
    """A promise for each month, beside the total."""
    if "per_month" not in section.values:
        return None
    inner, total = section.section("per_month"), _budget(section)
    inner.only("epsilon", "delta")
    found = _budget(inner)
    for name, monthly, whole in (("epsilon", found.epsilon, total.epsilon), ("delta", found.delta, total.delta)):
        if monthly > whole:
            raise inner.error(
                name,
                f"{name} = {plain(monthly)} a month is more than the total of {plain(whole)}, so it limits nothing; expected a smaller number.",
            )
    return found


def _epsilon(section: Section, name: str, *, zero: bool = False) -> Decimal | None:
    given = section.get(name, _NUMBER, _AMOUNT, None)
    if given is None:
        return None
    if zero and given in (0, "0"):
        return Decimal(0)
    try:
        return parse_epsilon(given, largest=LARGEST_TOTAL)
    except EvenhandError:
        raise section.error(name, f"{name} = {given!r}: expected {_AMOUNT}.") from None


def _place(given: str, folder: Path) -> str:
    """A path is one beside the file."""
    return given if "://" in given else str(folder / given)
