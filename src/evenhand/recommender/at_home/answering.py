"""From ratings to a report: keep at most the public cap, compute the bits, flip each with a secret coin; and, before a second round, take sides."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.at_home.coins import Coins, flip_threshold
from evenhand.recommender.at_home.ratings import usable
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.messages import SKETCHES, PublishedModel, Query, Report, Task, Token
from evenhand.recommender.messages.model import axis_of


def answer(task: Task, token: Token, ratings: Mapping[int, bool], coins: Coins) -> Report:
    """One randomised report; drawing it twice for one task would spend ε twice, so `Diary` keeps the first.

    Guarantee:
        For any two ``ratings``, any token and any task, the probabilities of any one report are within a
        factor of e^ε, ε being ``task.epsilon``. There is a report for any ``ratings``. Both hold for any sketch.

    Edge cases:
        Numbers that the catalogue does not have and opinions that are neither True nor False are left out.

    Args:
        ratings: for each rated item's number, whether it was liked.
        coins: where secret randomness comes from.
    """
    bits = _true_bits(task, token.serial, usable(ratings, len(task.items)), coins)
    threshold = flip_threshold(task.question_epsilon)
    released = sum((bit != coins.chance(threshold)) << place for place, bit in enumerate(bits))
    return Report(task.short_id, token.serial, token.tag, released)


def _true_bits(task: Task, serial: int, ratings: Mapping[int, bool], coins: Coins) -> list[bool]:
    """One truth value per question, whatever the sketch does with the ratings.

    One bit too many would be released as well, and one that is neither True nor False would not be flipped. An error or
    a warning would depend on ratings, so neither is passed on: a bit that is missing is False.
    """
    sketch = sketch_for(task)
    kept = _subsample(ratings, task.rated, coins) if SKETCHES[task.sketch].capped else ratings
    query = sketch.query(serial, sorted(ratings) if task.public_rated else [])
    bits: list[bool] = []
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bits.extend(bool(bit) for bit in islice(sketch.bits(query, kept, coins), task.questions))
    return bits + [False] * (task.questions - len(bits))


def check_query(task: Task, query: Query) -> None:
    """Refuse a server that states another query for this token than the public seed gives.

    Privacy does not rest on this, as ε holds for any query; it stops a server from targeting a person, and
    finds clients and servers that derive queries differently.

    Guarantee:
        Ratings are no argument: whether this refuses depends on what is public.

    Edge cases:
        With public rated items the pair that is asked about depends on them, so no server's statement of it is checked.
    """
    if query.task != task.short_id or not 0 <= query.serial < task.tokens:
        raise DataError("The query is for another task: ask the server again.")
    if task.public_rated:
        raise DataError(
            "The task treats rated items as public; for such tasks no query is stated or checked. Leave the query out."
        )
    sketch = sketch_for(task)
    derived = sketch.encode(sketch.query(query.serial, []))
    if hashlib.sha256(derived).digest() != query.digest:
        raise DataError(
            "The server's query is not the one that follows from the public seed. Do not answer; "
            "the server is faulty, runs another version, or is trying to single you out."
        )


def _subsample(ratings: Mapping[int, bool], cap: int, coins: Coins) -> Mapping[int, bool]:
    if len(ratings) <= cap:
        return ratings
    items = sorted(ratings)
    for place in range(cap):
        other = place + coins.below(len(items) - place)
        items[place], items[other] = items[other], items[place]
    return {item: ratings[item] for item in items[:cap]}


def on_one_side(task: Task, token: Token, model: PublishedModel, liked: Mapping[int, bool]) -> dict[int, bool]:
    """The ratings, with likes and dislikes exchanged for those who lean to the axis' negative side.

    Where half the people like what the others dislike, averages show nothing. Once a first round has found an axis roughly,
    everybody can bring their ratings to one side at home, and averages show everything.

    The side is found from ratings of items that the question is not about. With all of them an item's own rating would help to
    choose the sign that it then gets, and the second round would seem to confirm any first model, noise included.

    Guarantee:
        A fixed rule that is applied at home, before the bits are computed: whatever the ratings are, there is a result, and the
        report made from it is ε-private in the ratings. Errors are about the task and the model, which are public.
    """
    if not SKETCHES[task.sketch].senses:
        raise UsageError(f"sketch={task.sketch!r}: second rounds ask about sets of items; use maxsense.")
    axis = axis_of(task, model)
    liked = usable(liked, len(task.items))
    asked = set(_flat(sketch_for(task).query(token.serial, [])))
    lean = sum(axis[item] if like else -axis[item] for item, like in sorted(liked.items()) if item not in asked)
    return {item: like == (lean >= 0) for item, like in liked.items()}


def _flat(query: Iterable[int | Iterable[int]]) -> Iterable[int]:
    for one in query:
        if isinstance(one, int):
            yield one
        else:
            yield from one
