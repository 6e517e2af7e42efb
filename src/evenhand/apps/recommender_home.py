"""What people run at home: `diary`, `answer` and `recommend`.

What `answer` and `diary` print, write and end with never depends on ratings, but for the randomised bits themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from evenhand.apps.console import AsJson, say, write
from evenhand.guarantee import UsageError, plain
from evenhand.recommender.messages.exchange import read_message

if TYPE_CHECKING:
    from evenhand.recommender.at_home import Diary
    from evenhand.recommender.messages import PublishedModel, Query, Report, Task

Message: TypeAlias = "PublishedModel | Query | Report | Task"

TaskFile = Annotated[Path, typer.Argument(help="The task, as published by the server.")]
DiaryFile = Annotated[
    Path | None,
    typer.Option(
        "--diary",
        help="Another diary than the one of your account on this machine, which is found from any folder. "
        "The lifetime ε holds per diary.",
    ),
]
Ceiling = Annotated[str | None, typer.Option(help="A new diary's largest ε per task; 1.")]
Lifetime = Annotated[str | None, typer.Option(help="A new diary's total ε, ever; 4.")]
RatingsFile = Annotated[
    Path,
    typer.Option(
        help="Your ratings: CSV with columns item and liked, or rating. What can't be used in it is left out; "
        "recommend says how much."
    ),
]
GroupsFile = Annotated[
    Path | None,
    typer.Option("--groups", help="For a task about groups of items: its published CSV with columns item and group."),
]
LikeFrom = Annotated[float, typer.Option(help="A rating of at least this is a like.")]


def write_message(path: Path, message: Message) -> None:
    """JSON for files that are called so, else binary."""
    write(path, (message.to_json() + "\n").encode() if path.suffix == ".json" else message.to_bytes())


def diary(
    diary_file: DiaryFile = None,
    ceiling: Ceiling = None,
    lifetime: Lifetime = None,
    public_rated: Annotated[
        bool | None,
        typer.Option(
            "--public-rated/--private-rated",
            help="Whether it may be public which items you rated: decided once, for all tasks. Private until you do.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """At home: begin your diary, decide for it, or see where it is and what was spent. It reads no ratings.

    Example: evenhand recommender diary --lifetime 2 --private-rated
    """
    from evenhand.recommender.at_home import Diary

    book = Diary(diary_file, ceiling, lifetime, public_rated)
    decided = "not decided" if book.public_rated is None else "public" if book.public_rated else "private"
    say(
        as_json,
        {**_account(book), "ceiling": plain(book.ceiling), "public_rated": book.public_rated},
        f"{_spent(book)} At most {plain(book.ceiling)} per task. Which items you rated: {decided}.",
    )


def answer(
    task_file: TaskFile,
    token: Annotated[str, typer.Option(help="The token you were given.")],
    ratings: RatingsFile,
    out: Annotated[Path, typer.Option(help="Where to write the report; .json or binary.")] = Path("report.bin"),
    diary_file: DiaryFile = None,
    ceiling: Ceiling = None,
    lifetime: Lifetime = None,
    like_from: LikeFrom = 4.0,
    groups: GroupsFile = None,
    after: Annotated[Path | None, typer.Option(help="For a second round: the model of the first.")] = None,
    query: Annotated[Path | None, typer.Option(help="The server's statement of your query, to be checked.")] = None,
    as_json: AsJson = False,
) -> None:
    """At home: answer a task with randomised bits. Asking again gives the same bytes again.

    Example: evenhand recommender answer task.json --token "$TOKEN" --ratings mine.csv
    """
    from evenhand.recommender.at_home import Diary, check_query, on_one_side, opinions_of_groups, read_ratings
    from evenhand.recommender.messages import Groups, PublishedModel, Query, Task, Token
    from evenhand.recommender.messages.model import is_second_round

    asked, right = read_message(Task, task_file), Token.parse(token)
    if query is not None:
        check_query(asked, read_message(Query, query))
    catalogue = None if groups is None else Groups.read(groups)
    if catalogue is not None:
        catalogue.check(asked.items)
    first = None if after is None else read_message(PublishedModel, after)
    if first is None and is_second_round(asked):
        raise UsageError("The task is a second round: name the model of the first with --after.")
    if first is not None:
        on_one_side(asked, right, first, {})  # what does not fit is said before ratings are read
    book = Diary(diary_file, ceiling, lifetime)
    liked = read_ratings(ratings, asked.items if catalogue is None else catalogue.items, like_from).liked
    if catalogue is not None:
        liked = opinions_of_groups(liked, catalogue)
    report = book.answer(asked, right, liked if first is None else on_one_side(asked, right, first, liked))
    write_message(out, report)
    say(as_json, {"report": str(out), **_account(book)}, f"Wrote {out}: send it. {_spent(book)}")


def recommend(
    model_file: Annotated[Path, typer.Argument(help="The model, as published by the server.")],
    ratings: RatingsFile,
    top: Annotated[int, typer.Option(help="How many items.")] = 10,
    like_from: LikeFrom = 4.0,
    groups: GroupsFile = None,
    as_json: AsJson = False,
) -> None:
    """At home: what to try next, from the published model and your own ratings. Nothing is sent.

    Example: evenhand recommender recommend model.json --ratings mine.csv
    """
    from evenhand.recommender.at_home import read_ratings, recommend_from_groups
    from evenhand.recommender.at_home import recommend as recommend_items
    from evenhand.recommender.messages import Groups, PublishedModel

    model = read_message(PublishedModel, model_file)
    catalogue = None if groups is None else Groups.read(groups)
    mine = read_ratings(ratings, model.items if catalogue is None else catalogue.items, like_from)
    if catalogue is None:
        found = recommend_items(model, mine.liked, top)
    else:
        found = recommend_from_groups(model, catalogue, mine.liked, top)
    lines = [f"{place:>3}. {one.item}  ({one.score:.3f})" for place, one in enumerate(found, 1)]
    rows = [{"item": one.item, "score": one.score} for one in found]
    say(
        as_json,
        {"recommendations": rows, "notes": mine.left_out()},
        "\n".join([*(lines or ["You have rated every item: nothing is left."]), *mine.left_out()]),
    )


def _account(book: Diary) -> dict[str, Any]:
    return {"diary": str(book.path), "spent": plain(book.spent), "lifetime": plain(book.lifetime)}


def _spent(book: Diary) -> str:
    return (
        f"Spent {plain(book.spent)} of the lifetime ε of {plain(book.lifetime)}, which holds per diary; this one is "
        f"{book.path}."
    )
