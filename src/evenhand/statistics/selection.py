"""Private selection of group keys: which groups may be shown at all.

A user alone in a group would be revealed by the group's name. So each user supports a bounded number of groups, chosen at
random, with a bounded weight, and a group is shown if its support reaches a threshold in spite of noise: a user alone in any number
of groups gets one of them shown with probability at most δ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from evenhand.bounding import ONCE_EACH, Lost
from evenhand.guarantee import UsageError, exact_difference, split
from evenhand.noise import ShownCounts, Way
from evenhand.profiles import About, Support, Wanted
from evenhand.release import Noisy, Receipt
from evenhand.statistics.allocation import Allocation
from evenhand.statistics.keys import Keys, found_keys
from evenhand.statistics.support_choice import BUCKETS, Purse, Purses, chosen_way, given_way
from evenhand.statistics.support_words import facts, words
from evenhand.statistics.supports import Pairs, pairs_of
from evenhand.tables import Table

CHOICE = Fraction(3, 200)
"""Of ε, for the histogram of users by number of groups. More finds fewer groups in every benchmark."""

CHOICE_OF_ANSWER = Fraction(1, 20)
"""The same where numbers of users are all that is asked: it then also says what a limit on groups per user cuts off."""


@dataclass(frozen=True)
class Selection:
    """The groups that may be shown, and how they were found.

    Args:
        keys: the groups.
        way: the mechanism.
        groups: in how many groups users are, as far as the release knows; None if ``groups_per_user`` was given.
        counts: where numbers of supporters are the answer, for each group; what the choice cost; and what users in more groups lost.
    """

    keys: Keys
    way: Way
    groups: Support | None = None
    counts: tuple[Noisy, Decimal, Lost] | None = None

    def to_dict(self) -> dict[str, Any]:
        """For the release: how keys were selected, and how many users a group needed."""
        return facts(self.way, self.groups) | {"words": words(self.way, self.groups, bool(self.keys.rows))}


@contextmanager
def select_keys(
    table: Table,
    copy: Table,
    by: tuple[str, ...],
    allocation: Allocation,
    limit: int | None,
    receipt: Receipt,
    counts: bool = False,
) -> Iterator[Selection]:
    """Select groups; ``limit`` is the number of groups a user may support, chosen privately if None.

    Guarantee: the selection's (ε, δ) under presence; or, if the way has a ρ, that of names and numbers together, with as much
    normal noise in the numbers as goes with it. Sorted output; of groups that are not shown nothing is released: their keys stay in the
    engine, and only those that pass are turned into values.

    Args:
        table: where from.
        copy: one reading of it.
        by: the group columns.
        allocation: ε and δ of the selection, and of names and numbers together.
        limit: groups per user.
        receipt: of the debit.
        counts: nothing but the number of users in each group is asked for.
    """
    with pairs_of(copy, by) as pairs:
        groups = None
        if limit is None:
            price, purses = priced(allocation, counts)
            bought = Wanted(About("groups")).get(receipt, BUCKETS, pairs.histogram(), price)
            groups = bought.support
            way = chosen_way(groups, purses, bought)
            if isinstance(way.rounds[0], ShownCounts):
                places, noisy = receipt.supporters(way, pairs.supports(way.rounds[0], way.groups))
                keys = receipt.passed(found_keys(table, by, pairs.found, places))
                by_place = dict(zip(places, noisy.values, strict=True))
                ordered = Noisy([by_place[place] for place in keys.places], noisy.noise)
                lost = Lost.of(bought.posterior, ONCE_EACH, way.groups, gaussian=False)
                lost = lost.of_total(max(sum(ordered.values), 0))  # of the groups that are shown
                yield Selection(keys, way, groups, (ordered, price, lost))
                return
        else:
            way = given_way(limit, purses_of(allocation))
        places = _shown(pairs, way, receipt)
        yield Selection(receipt.passed(found_keys(table, by, pairs.found, places)), way, groups)


def purses_of(allocation: Allocation, price: Decimal = Decimal(0)) -> Purses:
    """What each way of selecting may spend, once the choice between them is paid for."""
    epsilon, delta = allocation.selection
    counted = Purse(exact_difference(epsilon, price), delta)
    joint = allocation.joint
    if joint is None:
        return Purses(counted, counted)
    return Purses(counted, Purse(exact_difference(joint.epsilon, price), joint.delta, joint.numbers))


def priced(allocation: Allocation, counts: bool = False) -> tuple[Decimal, Purses]:
    """The price of the choice, and what is left for either way; for numbers of users, everything for one that gives both."""
    price, _ = split(allocation.cost.epsilon, CHOICE_OF_ANSWER if counts else CHOICE)
    answer = Purse(exact_difference(allocation.cost.epsilon, price), allocation.cost.delta) if counts else None
    return price, purses_of(allocation, price)._replace(answer=answer)


def _shown(pairs: Pairs, way: Way, receipt: Receipt) -> list[int]:
    """The places of the groups that pass in any round; users drop what has passed and support the rest with more weight."""
    passing = receipt.selected(way)
    shown: list[int] = []
    with ExitStack() as open_tables:
        for look in way.rounds:
            left = open_tables.enter_context(pairs.without(shown)) if shown else pairs
            shown += passing(left.supports(look, way.groups))
    return shown


def parse_groups_per_user(given: object) -> int | None:
    """Read ``groups_per_user=``."""
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= 10_000:
        raise UsageError(f"groups_per_user={given!r}: expected a whole number between 1 and 10000, such as 10.")
    return given
