"""Second rounds: which side one is on, by the first round's model, and one's ratings as that side's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenhand.guarantee import UsageError
from evenhand.recommender.at_home.ratings import usable
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.messages import SKETCHES, PublishedModel, Task, Token
from evenhand.recommender.messages.rounds import axis_of


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
