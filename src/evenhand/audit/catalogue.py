"""Everything that is audited: each statistic with each strategy under each relation, selection, and the learners.

A statistic or strategy on the lists without lines of its own gets the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evenhand.audit import selecting
from evenhand.audit.group_distances import distances
from evenhand.audit.located import located_mean, tilted
from evenhand.audit.looking import LOOK_PAIRS, looked
from evenhand.audit.mechanism import BlackBox, Claim, Enumerable, Mechanism, Pair
from evenhand.audit.pairs import GROUPS, HIGH, LOW, neighbours
from evenhand.audit.releases import EndToEnd, FixedRelease, Question, shown_keys
from evenhand.audit.searching import BUSY_PAIRS, PAIRS, searched, told_apart
from evenhand.bounding import (
    STRATEGIES,
    CentredInterval,
    LocatedMean,
    NormClip,
    RowLimit,
    SmoothWeights,
    Strategy,
    TotalCap,
)
from evenhand.guarantee import Relation, parse_epsilon
from evenhand.noise import NoisyMax, TopK
from evenhand.session import Drafts
from evenhand.statistics import STATISTICS, Count, Draft, Statistic, Sum, Users

BOUNDS = (LOW, HIGH)
DELTA = 0.02
"""Large enough that a sample can see it."""


@dataclass(frozen=True)
class Case:
    """A mechanism and where to look for its worst pair.

    Args:
        mechanism: what is audited.
        relation: which tables are neighbours, for releases.
        pairs: the pairs, for everything else.
        slow: every output takes a run of its own, so a short audit draws fewer.
    """

    mechanism: Mechanism | Enumerable
    relation: Relation | None = None
    pairs: tuple[Pair, ...] = ()
    slow: bool = False

    @property
    def title(self) -> str:
        """The name in results, with the relation."""
        return self.mechanism.name if self.relation is None else f"{self.mechanism.name} ({self.relation})"

    def neighbours(self, quick: bool) -> list[Pair]:
        """The pairs to try."""
        return list(self.pairs) if self.relation is None else list(neighbours(self.relation, quick))


def releases() -> Iterator[Case]:
    """The questions of a session."""
    for name, relations, ask, delta in _fixed():
        for relation in relations:
            yield Case(FixedRelease(name, Claim(1.0, delta), ask), relation)
    for name, relations, ask, delta in _chosen():
        for relation in relations:
            shown = "selected" in name or name.startswith("top")
            features = shown_keys((*GROUPS, "only 0", "only 1")) if shown else None
            yield Case(EndToEnd(name, Claim(1.0, delta), ask, features), relation, slow=True)


PRESENCE, VALUES = (Relation.PRESENCE,), (Relation.VALUES,)
BOTH = PRESENCE + VALUES
Line = tuple[str, tuple[Relation, ...], Question, float]

_count, _users = partial(Drafts.count, epsilon=1), partial(Drafts.users, epsilon=1)
_sum = partial(Drafts.sum, column="v", bounds=BOUNDS, epsilon=1)
_mean = partial(Drafts.mean, column="v", bounds=BOUNDS, epsilon=1)
_share = partial(Drafts.share, condition="v > 0", epsilon=1)
_ball = partial(Drafts.mean, column=["v", "w"], ball=HIGH, epsilon=1)
_variance = partial(Drafts.variance, column="v", bounds=BOUNDS, epsilon=1)
_per_user = partial(Drafts.per_user_mean, column="v", bounds=BOUNDS, epsilon=1)
_ratio = partial(Drafts.ratio, numerator=Sum("v", BOUNDS), denominator=Count(), epsilon=1)
_histogram = partial(Drafts.histogram, column="v", edges=[LOW, -0.5, 0, 0.5, HIGH], epsilon=1)
_median = partial(Drafts.median, column="v", bounds=BOUNDS, epsilon=1)
_quantiles = partial(Drafts.quantiles, column="v", quantiles=[0.25, 0.5, 0.9], bounds=BOUNDS, epsilon=1)
_distinct = partial(Drafts.distinct, column="v", epsilon=1)
_top = partial(Drafts.top, column="g", k=2, epsilon=1)


def _fixed() -> Iterator[Line]:
    for strategy in (TotalCap(3), SmoothWeights("2.5"), RowLimit(1)):
        yield f"count, {strategy.title}", PRESENCE, partial(_count, bounding=strategy), 0.0
    yield "users", PRESENCE, _users, 0.0
    for bounded in (TotalCap(5), SmoothWeights(5)):
        yield f"sum, {bounded.title}", BOTH, partial(_sum, bounding=bounded), 0.0
    yield "sum, CentredInterval", VALUES, partial(_sum, bounding=CentredInterval(5)), 0.0
    yield "mean, SmoothWeights", BOTH, partial(_mean, bounding=SmoothWeights(5)), 0.0
    yield "mean, CentredInterval", VALUES, partial(_mean, bounding=CentredInterval(5)), 0.0
    yield "share of rows, SmoothWeights", BOTH, partial(_share, bounding=SmoothWeights(5)), 0.0
    yield "share of users", BOTH, partial(_share, of="users"), 0.0
    for scaled in (NormClip(3), SmoothWeights(2)):
        yield f"means in a ball, {scaled.title}", VALUES, partial(_ball, bounding=scaled), 0.0
    yield "variance, NormClip", BOTH, partial(_variance, bounding=NormClip(3)), 0.0
    yield "total per user, TotalCap", BOTH, partial(_per_user, of="total", bounding=TotalCap("0.5")), 0.0
    for name, question in (("count", _count), ("sum", _sum), ("mean", _mean)):
        relations = PRESENCE if name == "count" else BOTH
        grouped = partial(question, by="g", keys=list(GROUPS))
        yield f"{name} by group, NormClip", relations, partial(grouped, bounding=NormClip(3)), 0.0
        gaussian = partial(grouped, bounding=NormClip(3, norm=2), delta=DELTA)
        yield f"{name} by group, NormClip L2", relations, gaussian, DELTA
    yield "distances by group", BOTH, distances, 0.0
    yield "distances by number of rows", BOTH, tilted, 0.0
    yield "distances by group, L2", VALUES, partial(distances, delta=DELTA), DELTA
    yield "users by group", PRESENCE, partial(_users, by="g", keys=list(GROUPS), bounding=NormClip(2)), 0.0
    per_user = partial(_per_user, by="g", keys=list(GROUPS), bounding=NormClip(2))
    yield "mean per user by group, NormClip", VALUES, per_user, 0.0
    yield "total per user by group, NormClip", PRESENCE, partial(per_user, of="total"), 0.0
    over_users = partial(_ratio, denominator=Users(), by="g", keys=list(GROUPS), bounding=NormClip(2))
    yield "ratio by group, NormClip", PRESENCE, over_users, 0.0
    yield "histogram, NormClip", BOTH, partial(_histogram, bounding=NormClip(3)), 0.0
    yield "histogram, NormClip L2", BOTH, partial(_histogram, bounding=NormClip(3, norm=2), delta=DELTA), DELTA
    for limit in (1, 3):
        yield f"distinct, {limit} per user", BOTH, partial(_distinct, values_per_user=limit), 0.0
    yield "distinct by group", BOTH, partial(_distinct, values_per_user=2, by="g", keys=list(GROUPS)), 0.0
    yield from _others()


def _others() -> Iterator[Line]:
    """Statistics and strategies on the lists that have no lines of their own, each with a bound.

    A standard deviation is read from the noisy integers of a variance, so the line of that is its own.
    """
    own = (
        "count",
        "users",
        "sum",
        "mean",
        "share",
        "per_user_mean",
        "variance",
        "std",
        "ratio",
        "median",
        "quantiles",
        "histogram",
        "top",
        "distinct",
    )
    for kind in (kind for name, kind in STATISTICS.items() if name not in own):
        yield f"{kind.name}, NormClip", BOTH, partial(_example, kind=kind), 0.0
    asks = {"bound_count": (_count, PRESENCE), "bound_sum": (_sum, BOTH), "bound_mean": (_mean, BOTH)}
    known = (TotalCap, SmoothWeights, RowLimit, CentredInterval, NormClip, LocatedMean)
    for strategy in (strategy for strategy in STRATEGIES if strategy not in known):
        bounded: Callable[[int], Strategy] = strategy
        for method, (question, relations) in asks.items():
            if getattr(strategy, method) is not getattr(Strategy, method):
                yield (
                    f"{method.removeprefix('bound_')}, {strategy.title}",
                    relations,
                    partial(question, bounding=bounded(3)),
                    0.0,
                )


def _example(ask: Drafts, kind: type[Statistic]) -> Draft:
    return ask.ask(kind.example("v", BOUNDS), epsilon=1, bounding=NormClip(3))


def _chosen() -> Iterator[Line]:
    yield "sum, RowLimit", BOTH, partial(_sum, bounding=RowLimit(2)), 0.0
    yield "mean, RowLimit", BOTH, partial(_mean, bounding=RowLimit(2)), 0.0
    yield "count, auto", PRESENCE, _count, 0.0
    yield "sum, auto", BOTH, _sum, 0.0
    yield "mean, auto", BOTH, _mean, 0.0
    yield "mean, bounds found", BOTH, partial(Drafts.mean, column="v", epsilon=1), 0.0
    yield "mean, located", BOTH, partial(located_mean, below=2**26, above=2**28), 0.0
    yield "variance, auto", BOTH, _variance, 0.0
    yield "histogram, auto", BOTH, _histogram, 0.0
    yield "histogram with δ, auto", BOTH, partial(_histogram, delta=DELTA), DELTA
    yield "total per user, auto", BOTH, partial(_per_user, of="total"), 0.0
    grouped: dict[str, Any] = {"by": "g", "keys": list(GROUPS)}
    yield "count by group, auto", PRESENCE, partial(_count, **grouped), 0.0
    yield "users by group, auto", PRESENCE, partial(_users, **grouped), 0.0
    yield "sum by group, auto", BOTH, partial(_sum, **grouped), 0.0
    yield "mean by group, auto", BOTH, partial(_mean, **grouped), 0.0
    yield "mean by group with δ, auto", BOTH, partial(_mean, **grouped, delta=DELTA, bounding=NormClip(norm=2)), DELTA
    yield "median, SmoothWeights", BOTH, partial(_median, bounding=SmoothWeights(2)), 0.0
    yield "median, auto", BOTH, _median, 0.0
    yield "quantiles, SmoothWeights", BOTH, partial(_quantiles, bounding=SmoothWeights(2)), 0.0
    yield "quantiles by group, auto", BOTH, partial(_quantiles, **grouped), 0.0
    yield "distinct, auto", BOTH, _distinct, 0.0
    yield "top by public keys", PRESENCE, partial(_top, keys=list(GROUPS)), 0.0
    yield "top by public keys, rows", PRESENCE, partial(_top, of="rows", keys=list(GROUPS)), 0.0
    yield "top of selected keys", PRESENCE, partial(_top, delta=DELTA, groups_per_user=2), DELTA
    yield "top of selected keys, auto", PRESENCE, partial(_top, delta=DELTA), DELTA
    yield "top of selected keys, one per user", PRESENCE, partial(_top, delta=DELTA, groups_per_user=1), DELTA
    selected = partial(_count, by="g", delta=DELTA, groups_per_user=2, bounding=NormClip(2))
    yield "count by selected keys", PRESENCE, selected, DELTA
    yield "sum by selected keys, auto", PRESENCE, partial(_sum, by="g", delta=DELTA), DELTA
    yield "ratio by selected keys, auto", PRESENCE, partial(_ratio, by="g", delta=DELTA), DELTA
    yield "mean by selected keys, auto", PRESENCE, partial(_mean, by="g", delta=DELTA), DELTA


def selections() -> Iterator[Case]:
    """The selection of groups by its exact law; the choice of one candidate among few, each pair of scores moves by at most 3; and the
    search for quantiles.
    """
    for mechanism, exact_pairs in selecting.honest():
        yield Case(mechanism, pairs=exact_pairs)
    pairs = (
        Pair("the best falls back", (3, 0, 0, 0, 0, 0), (0, 3, 3, 3, 3, 3)),
        Pair("one candidate passes the others", (0, 0, 0, 0), (-3, 3, -3, -3)),
        Pair("a tie breaks", (0, 0), (-3, 3)),
        Pair("all scores move together", (0, -1, -2), (3, 2, 1)),
    )
    chooser = NoisyMax.calibrated(3, parse_epsilon(1))
    yield Case(BlackBox("permute-and-flip", Claim(1.0), lambda scores: chooser.choose(scores)), pairs=pairs)
    yield Case(BlackBox("search for quantiles", Claim(1.0), searched), pairs=PAIRS[1:], slow=True)
    yield Case(BlackBox("kinds of users told apart", Claim(1.0), told_apart), pairs=BUSY_PAIRS)
    yield Case(BlackBox("search for bounds", Claim(1.0), looked), pairs=LOOK_PAIRS, slow=True)
    rising = (
        Pair("one score rises", (4, 3, 3, 3, 0), (4, 3, 3, 5, 0)),
        Pair("all but the best rise", (2, 0, 0, 0, 0), (2, 2, 2, 2, 2)),
        Pair("all rise", (0, 0, 0), (2, 2, 2)),
        Pair("the best rises", (0, 0, 0, 0), (2, 0, 0, 0)),
    )
    for groups, words in ((None, "one after the other"), (1, "at once")):
        top = TopK(2, 2, groups, parse_epsilon(1))
        cases = rising if groups is None else (rising[0], rising[3])
        yield Case(BlackBox(f"top two, {words}", Claim(1.0), partial(_first_two, top)), pairs=cases)


def _first_two(top: TopK, scores: Sequence[int]) -> list[float]:
    return [float(place) for place in top.choose_top(scores)]
