"""The recommender's sketches as mechanisms for the audit: exact laws of the client's own code, under all of its coins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import combinations

from evenhand.audit import Claim, KnownLaw, Pair, law_of
from evenhand.audit.catalogue import Case
from evenhand.recommender.at_home import answer
from evenhand.recommender.messages import SKETCHES, Task, Token

_ITEMS = 4
_SERIALS = 6

Person = tuple[int, Mapping[int, bool]]
"""The serial of a person's token, which decides the query, and their ratings."""


def sketches() -> Iterator[Case]:
    """Every sketch: one person's ratings replaced by any other."""
    for sketch in SKETCHES:
        law = partial(_law, _task(sketch))
        yield Case(KnownLaw(f"{sketch} sketch (one person's ratings)", Claim(1.0), law), pairs=_pairs())


def _law(task: Task, person: Person) -> dict[Hashable, Fraction]:
    serial, ratings = person
    token = Token(task.short_id, serial, bytes(8))
    return law_of(lambda coins: answer(task, token, ratings, coins).answer)


def _pairs() -> tuple[Pair, ...]:
    people: dict[str, dict[int, bool]] = {
        "no ratings": {},
        "likes all": dict.fromkeys(range(_ITEMS), True),
        "dislikes all": dict.fromkeys(range(_ITEMS), False),
        "likes one": {0: True},
        "mixed": {0: True, 1: False, 2: True},
    }
    return tuple(
        Pair(f"{one} against {other}, query {serial}", (serial, people[one]), (serial, people[other]))
        for serial in range(_SERIALS)
        for one, other in combinations(people, 2)
    )


def _task(sketch: str) -> Task:
    return Task(
        items=tuple(f"item {number}" for number in range(_ITEMS)),
        sketch=sketch,
        epsilon=Decimal(1),
        rated=2,
        tokens=8,
        pool=8,
        theta=Decimal(1) if SKETCHES[sketch].senses else None,
        questions=2 if SKETCHES[sketch].several else 1,
        beacon=bytes(32),
    )
