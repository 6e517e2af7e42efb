"""``evenhand plan``: the error of each bound, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.apps.console import AsJson, check_writable, parse_pair, show_json
from evenhand.guarantee import DataError, UsageError
from evenhand.statistics import STATISTICS

if TYPE_CHECKING:
    from evenhand.planning import Plan
    from evenhand.profiles import Profile

PLANNED = [name for name, kind in STATISTICS.items() if kind.planned_as or name == "users"]

HELP = """Forecast the error before anything is spent: noise and bias for every strategy, and the best bound on a user.

Say how many rows the users have: --pareto, --zipf or --lognormal with --users and --rows, --counts FILE (one number per line), or
--profile FILE (bought before and saved). Nothing is read from a table and nothing is spent.

With --groups the forecast is for a count, users or sum by group: the error of a small, a middling and a large group, and with
--hidden how many of the groups would be shown.

For erm, a linear model, give --dimension. With --delta the forecast says whether it will beat a constant one, without how many rows per
user to use. For selection, a choice among models, give --hypotheses: how many there are.

Exit codes: 0 planned, 2 bad usage, 4 file unreadable.
"""

EXAMPLES = """Examples:

evenhand plan mean --pareto 1.5 --users 10000 --rows 200000 --bounds 0.5:5 --epsilon 0.2 --html plan.html

evenhand plan count --counts rows_per_user.txt --epsilon 0.1

evenhand plan count --groups 300 --pareto 1.5 --users 10000 --rows 200000 --epsilon 1 --delta 1e-6

evenhand plan users --groups 300 --hidden --lognormal 1.2 --users 30000 --rows 900000 --epsilon 1 --delta 1e-6 --json

evenhand plan erm --pareto 1.5 --users 10000 --rows 50000 --dimension 20 --epsilon 1 --delta 1e-6

evenhand plan mean --lognormal 1 --users 5000 --rows 100000 --bounds 0:10 --epsilon 1 --protects values --for-error 0.01
"""


def plan(
    statistic: Annotated[
        str, typer.Argument(help="One of: " + ", ".join(PLANNED) + " (users with --groups), erm, selection.")
    ],
    epsilon: Annotated[str, typer.Option(help="ε of the planned release, such as 0.2.")],
    bounds: Annotated[str | None, typer.Option(help="LOW:HIGH for one value; needed for sum and mean.")] = None,
    pareto: Annotated[float | None, typer.Option(help="Pareto tail: exponent α above 1.")] = None,
    zipf: Annotated[float | None, typer.Option(help="Zipf's law by rank: exponent above 0.")] = None,
    lognormal: Annotated[float | None, typer.Option(help="Log-normal: standard deviation of the logarithm.")] = None,
    users: Annotated[int | None, typer.Option(help="Number of users, with --pareto, --zipf or --lognormal.")] = None,
    rows: Annotated[float | None, typer.Option(help="Number of rows, with --pareto, --zipf or --lognormal.")] = None,
    counts: Annotated[Path | None, typer.Option(help="A file with the rows of each user, one number per line.")] = None,
    profile: Annotated[Path | None, typer.Option(help="A profile saved as JSON.")] = None,
    protects: Annotated[str | None, typer.Option(help="presence (default), or values (row counts are public).")] = None,
    heterogeneity: Annotated[
        float | None,
        typer.Option(
            help="How much heavy users differ: for a mean in the unit of the values; for erm and selection see the docs on planning."
        ),
    ] = None,
    for_error: Annotated[
        float | None, typer.Option(help="Also answer: which ε (and for a mean, how many users) for this error?")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Plan by group: how many groups, or the size of each (a guess): 300, or 900,40,5."),
    ] = None,
    delta: Annotated[str, typer.Option(help="With --groups, and for erm: δ of the planned release.")] = "0",
    hidden: Annotated[
        bool, typer.Option("--hidden", help="With --groups: their names are hidden; needs --delta.")
    ] = False,
    groups_per_user: Annotated[
        int | None, typer.Option(help="With --hidden: how many groups a user supports at most.")
    ] = None,
    dimension: Annotated[int | None, typer.Option(help="For erm: the number of features.")] = None,
    hypotheses: Annotated[int | None, typer.Option(help="For selection: how many hypotheses.")] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="For erm: logistic, huber-svm, squared; for selection: zero-one, absolute, squared."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="For erm and selection: how many classes, or the size of each (a guess): 3, or 0.99,0.01."),
    ] = None,
    as_json: AsJson = False,
    html: Annotated[Path | None, typer.Option(help="Also write one self-contained page.")] = None,
) -> None:
    """Forecast the error before anything is spent (the help text is `HELP`)."""
    from evenhand.planning import plan as make_plan

    shape = _profile({"pareto": pareto, "zipf": zipf, "lognormal": lognormal}, users, rows, counts, profile)
    model = statistic in ("erm", "selection")
    asked: dict[str, Any] = {"heterogeneity": heterogeneity}
    if model:
        if for_error is not None:
            raise UsageError(
                f"--for-error {for_error:g} is for statistics; a plan for {statistic} says which ε it would take."
            )
        asked |= {
            "groups": groups, "hidden": hidden, "groups_per_user": groups_per_user, "dimension": dimension, "hypotheses": hypotheses,
            "loss": loss, "classes": None if classes is None else _sizes("classes", classes), "delta": None if delta == "0" else delta,
        }  # fmt: skip
    elif (dimension, hypotheses, loss, classes) != (None, None, None, None):
        raise UsageError(
            f"--dimension, --hypotheses, --loss and --classes go with erm and selection, not with {statistic}; leave them out."
        )
    elif groups is not None:
        if heterogeneity is not None:
            raise UsageError(
                f"--heterogeneity {heterogeneity:g} would change nothing in a plan by group; leave it out."
            )
        sizes = _sizes("groups", groups)
        asked = {"groups": sizes, "delta": delta, "hidden": hidden, "groups_per_user": groups_per_user}
    elif hidden or groups_per_user is not None or delta != "0":
        raise UsageError("--delta, --hidden and --groups-per-user go with --groups; say how many: --groups 300.")
    between = parse_pair(bounds, "bounds")
    made: Any = make_plan(statistic, shape, epsilon, bounds=between, protects=protects, **asked)
    answers: dict[str, float] = {}
    if for_error is not None:
        answers = {"error": for_error, "epsilon": made.epsilon_for(for_error)}
        if statistic == "mean" and groups is None:  # more users make a sum larger, not its error smaller
            answers["users"] = made.users_for(for_error)
    if html is not None:
        if not hasattr(made, "to_html"):
            raise UsageError("--html: this plan has no page; it is printed, or --json.")
        check_writable(html, "html")
        made.to_html(html)
    if as_json:
        show_json(made.to_dict() | ({"for_error": answers} if answers else {}))
        return
    if model or groups is not None:
        print(made)
    else:
        _show_curve(made)
    if answers:
        over = " over all groups" if groups is not None else ""
        more = f", or {answers['users']:,} users at this ε" if "users" in answers else ""
        print(f"\nFor an error of {for_error:g}{over}: ε = {answers['epsilon']:.3g} with these users{more}.")
    if html is not None and not model:
        print(f"\nWritten: {html}")


def _sizes(name: str, text: str) -> int | list[float]:
    try:
        sizes = [float(size) for size in text.split(",")]
    except ValueError:
        raise UsageError(f"--{name} {text!r}: expected a number of {name}, or their sizes: 300, or 900,40,5.") from None
    return int(sizes[0]) if len(sizes) == 1 and sizes[0].is_integer() else sizes


def _show_curve(made: Plan) -> None:
    from rich.console import Console

    from evenhand.pages.plan import small_curve

    console = Console(highlight=False)
    curve = small_curve(made.curve(made.best.strategy), min(60, console.width - 2))
    console.print(f"{made.explain()}\n\n{curve}\n")
    console.print(str(made.table()), soft_wrap=True)


def _profile(
    laws: dict[str, float | None], users: int | None, rows: float | None, counts: Path | None, saved: Path | None
) -> Profile:
    from evenhand.profiles import Profile

    given = {name: value for name, value in laws.items() if value is not None}
    if len(given) + (counts is not None) + (saved is not None) != 1:
        raise UsageError(
            "say how many rows the users have, in exactly one way: --pareto, --zipf, --lognormal, --counts or --profile. "
            "For example --pareto 1.5 --users 10000 --rows 200000."
        )
    if saved is not None:
        return Profile.load(saved)
    if counts is not None:
        return Profile.counts(_numbers(counts))
    name, value = next(iter(given.items()))
    if users is None or rows is None:
        raise UsageError(f"--{name} needs --users and --rows too, such as --users 10000 --rows 200000.")
    make = {"pareto": Profile.pareto, "zipf": Profile.zipf, "lognormal": Profile.lognormal}[name]
    return make(value, users, rows)


def _numbers(path: Path) -> list[float]:
    try:
        return [float(line) for line in path.read_text(encoding="utf-8").split()]
    except OSError as error:
        raise DataError(
            f"--counts {path} can't be read: {error.strerror}; give a text file, one number per line."
        ) from None
    except ValueError:
        raise DataError(f"--counts {path} has something that is not a number; expected one number per line.") from None
