"""Exact laws of randomised code: run it under every outcome of its coins, and add up exact probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial

from evenhand.audit import laws
from evenhand.recommender.at_home import answer
from evenhand.recommender.at_home.coins import Coins
from evenhand.recommender.messages import Report, Task, Token

Law = dict[Hashable, Fraction]


def law_of(experiment: Callable[[Coins], Hashable]) -> Law:
    """The exact distribution of what ``experiment`` returns."""
    law = laws.law_of(experiment)
    assert sum(law.values()) == 1
    return law


def all_ratings(items: int) -> Iterator[dict[int, bool]]:
    """Every way to like, dislike or not rate each item."""
    for opinions in itertools.product((None, False, True), repeat=items):
        yield {item: opinion for item, opinion in enumerate(opinions) if opinion is not None}


Answer = Callable[[Task, Token, Mapping[int, bool], Coins], Report]


def worst_ratio(task: Task, serial: int, inputs: list[dict[int, bool]], respond: Answer = answer) -> Fraction | None:
    """The largest ratio of any report's probabilities under any two inputs; None if one of them is 0."""
    token = Token(task.short_id, serial, bytes(8))
    laws = [law_of(partial(lambda x, coins: respond(task, token, x, coins).answer, x)) for x in inputs]
    worst = Fraction(1)
    for report in set().union(*laws):
        chances = [law.get(report, Fraction(0)) for law in laws]
        if min(chances) == 0:
            return None
        worst = max(worst, max(chances) / min(chances))
    return worst


def power_below(epsilon: Decimal) -> Fraction:
    """A rational number just below e^ε."""
    context = Context(prec=100)
    return Fraction(context.next_minus(context.exp(epsilon)))
