"""Simulated people, as a campaign meets them: each answers one query, truthfully until the coin is tossed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.at_server.reports import Batch
from evenhand.recommender.at_server.sketches import Bits, Bytes, Ints, Opinions, Population, RatedSets, ServerSketch
from evenhand.recommender.at_server.sketches.maxsense import MaxSense
from evenhand.recommender.simulation.quality import opinions_of
from evenhand.recommender.tastes import Floats, Tastes
from evenhand.recommender.tuning import strength

_POOL_BATCH = 1 << 18  # a pool's counters are added as a whole: seldom enough not to matter


class People(Population):
    """A population that answers queries, with a generator that is neither secure nor meant to be."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def reports(self, sketch: ServerSketch, first: int, last: int) -> Batch:
        """The reports of the tokens with serials ``first`` to ``last - 1``, each of another person."""
        task = sketch.task
        serials = np.arange(first, last, dtype=np.uint32)
        bits = sketch.truths(serials.astype(np.int64) % task.pool, self)
        bits ^= self.random.random(bits.shape) >= (1 + strength(float(task.question_epsilon))) / 2
        weights = np.uint32(1) << np.arange(task.questions, dtype=np.uint32)
        return Batch(serials, (bits * weights).sum(axis=1, dtype=np.uint32), None)

    def answer(self, fold: Fold, first: int, last: int) -> None:
        """Let people with serials ``first`` to ``last - 1`` answer, and fold what they say."""
        own = fold.task.pool == fold.task.tokens
        batch = fold.sketch.batch if own else _POOL_BATCH
        for at in range(first, last, batch):
            fold.add(self.reports(fold.sketch, at, min(at + batch, last)))


class ResampledPeople(People):
    """A person of a real table of ratings, drawn at random, for every report: everyone in it stands for many.

    What comes out describes a larger population that looks like the table, not the table's people: an experiment for
    whoever holds the table, and no private release.
    """

    def __init__(self, opinions: Opinions, seed: int = 0) -> None:
        super().__init__(seed)
        if not len(opinions):
            raise UsageError("The table has no people to resample.")
        self.table = opinions

    def opinions(self, count: int, cap: int | None) -> Opinions:
        """Rows of the table, with at most ``cap`` ratings each, chosen at random as at home."""
        kept = self.table[self._who(count)]
        if cap is None:
            return kept
        over = np.flatnonzero((kept != 0).sum(axis=1) > cap)
        if len(over):
            keys = np.where(kept[over] != 0, self.random.random((len(over), kept.shape[1]), np.float32), 2)
            last = np.partition(keys, cap - 1, axis=1)[:, cap - 1, None]
            kept[over] *= keys <= last
        return kept

    def like_any(self, sketch: MaxSense, numbers: Ints) -> Bits:
        kept = self.opinions(len(numbers), sketch.task.rated)
        return np.asarray((kept[np.arange(len(numbers))[:, None, None], sketch.sets(numbers)] == 1).any(axis=2))

    def rate_alike(self, low: Ints, high: Ints, known: bool) -> Bits:
        if known:
            raise UsageError(
                "People drawn from a file can't be simulated with public rated items, as their queries depend on them; use people of assumed tastes."
            )
        who = self._who(len(low))
        first, second = self.table[who, low], self.table[who, high]
        return np.asarray((first != 0) & (first == second))

    def lean_alike(self, first: Bytes, second: Bytes, cap: int) -> Bits:
        """By two inner products; a coin decides where one is 0."""
        kept = self.opinions(len(first), cap).astype(np.float32)
        signs = []
        for vectors in (first, second):
            bits = np.unpackbits(vectors, axis=1, count=kept.shape[1], bitorder="little")
            product = ((2.0 * bits.astype(np.float32) - 1) * kept).sum(axis=1)
            coin = self.random.integers(0, 2, len(product)) * 2 - 1
            signs.append(np.where(product == 0, coin, product) > 0)
        return np.asarray(signs[0] == signs[1])

    def _who(self, count: int) -> Ints:
        return self.random.integers(0, len(self.table), count)


_MOST_KINDS = 1 << 22
_AT_ONCE = 4096  # people drawn item by item at a time: two floats per item each


class BlockPeople(People):
    """A fresh person of the block model for every report, who has ``rated`` ratings: no more than the task's public cap.

    Their bits are exact in law, though nobody's ratings are drawn item by item. Given a query, a person's bit depends only on how
    many of the rated items fall into each kind of item that the query tells apart, and those numbers are multivariate hypergeometric.
    """

    def __init__(self, tastes: Tastes, items: int, rated: int, seed: int = 0) -> None:
        super().__init__(seed)
        self.tastes, self.items, self.rated = tastes, items, rated
        self.labels = tastes.labels(items)
        self._like = np.array(tastes.like)
        self._tables: dict[int, Floats] = {}
        self._pool: tuple[bytes, Floats] | None = None

    def _classes(self, count: int) -> Ints:
        edges = np.cumsum(self.tastes.people)[:-1]
        return np.searchsorted(edges, self.random.random(count), side="right")

    def opinions(self, count: int, cap: int | None) -> Opinions:
        """Drawn item by item: the slow way, for questions that are not among those below."""
        rated = self.rated if cap is None else min(self.rated, cap)
        classes = np.split(self._classes(count), range(_AT_ONCE, count, _AT_ONCE))
        return np.concatenate([opinions_of(some, self.tastes, self.items, rated, self.random) for some in classes])

    def like_any(self, sketch: MaxSense, numbers: Ints) -> Bits:
        """A person likes nothing in a set with a known chance. With one question per person their
        class can be averaged over; a pool's queries come again and again, so their chances are kept. Several questions
        are drawn independently given the class: each exact, jointly exact where few of the items are rated.
        """
        classes = self._classes(len(numbers))
        if sketch.task.pool == sketch.task.tokens:
            quiet = self._quiet_chances(sketch, numbers)
        else:
            if self._pool is None or self._pool[0] != sketch.task.query_key:
                everything = np.arange(sketch.task.pool)
                parts = np.split(everything, range(sketch.batch, sketch.task.pool, sketch.batch))
                table = np.concatenate([self._quiet_chances(sketch, part) for part in parts])
                self._pool = sketch.task.query_key, table
            quiet = np.take(self._pool[1], numbers, axis=0)
        if quiet.shape[2] > 1:
            quiet = np.take_along_axis(quiet, classes[:, None, None], axis=2)
        return self.random.random(quiet.shape[:2]) >= quiet[:, :, 0]

    def _quiet_chances(self, sketch: MaxSense, numbers: Ints) -> Floats:
        """The chance of liking nothing in each set of each query: queries x questions x classes of people."""
        sets = sketch.sets(numbers)
        base = sets.shape[2] + 1
        if base**self.tastes.clusters > _MOST_KINDS:
            raise UsageError("Too many classes for sets of this size: simulate fewer classes or a smaller theta.")
        if base not in self._tables:
            self._tables[base] = np.full((base**self.tastes.clusters, len(self._like)), np.nan)
        table = self._tables[base]
        powers = np.float32(base) ** self.labels.astype(np.float32)
        chances = np.empty((*sets.shape[:2], len(self._like)))
        for question in range(sets.shape[1]):
            # A set's kind: how many different items of each class it has, as one number in base m + 1. Such
            # numbers stay below 2^24, so that adding them up by a product of 32-bit floats is exact.
            ordered = np.sort(sets[:, question].astype(np.uint16), axis=1)
            worth = np.take(powers, ordered)
            worth[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = 0
            kinds = (worth @ np.ones(base - 1, np.float32)).astype(np.int64)
            found = np.take(table, kinds, axis=0)
            unknown = np.isnan(found[:, 0])
            if unknown.any():
                missing = np.unique(kinds[unknown])
                table[missing] = self._compute_quiet(missing, base)
                found = np.take(table, kinds, axis=0)
            chances[:, question] = found
        if sets.shape[1] == 1:
            return np.asarray(chances @ np.array(self.tastes.people)[:, None])
        return chances

    def _compute_quiet(self, kinds: Ints, base: int) -> Floats:
        """Reveal the set's items one by one: with r of w ratings placed among the n items so far, the next is rated
        with probability (w - r)/(N - n), and then not liked with probability 1 - b. ``chance[.., r]`` is the
        probability of r ratings and no like.
        """
        quiet = np.empty((len(kinds), len(self._like)))
        for person, like in enumerate(self._like):
            chance = np.zeros((len(kinds), self.rated + 1))
            chance[:, 0] = 1
            revealed = np.zeros(len(kinds))
            for label, b in enumerate(like):
                wanted = kinds // base**label % base
                for step in range(int(wanted.max(initial=0))):
                    going = wanted > step
                    left = (self.rated - np.arange(self.rated + 1)) / (self.items - revealed[going])[:, None]
                    rated = np.clip(left, 0, 1)
                    before = chance[going]
                    after = before * (1 - rated)
                    after[:, 1:] += (before * rated)[:, :-1] * (1 - b)
                    chance[going] = after
                    revealed[going] += 1
            quiet[:, person] = chance.sum(axis=1)
        return quiet

    def rate_alike(self, low: Ints, high: Ints, known: bool) -> Bits:
        """Both are rated with a known chance, and then alike with another, as what people rate does not depend on what they like."""
        both = 1.0 if known else self.rated * (self.rated - 1) / (self.items * (self.items - 1))
        classes = self._classes(len(low))
        first, second = (self._like[classes, self.labels[item]] for item in (low, high))
        alike = first * second + (1 - first) * (1 - second)
        return np.asarray(self.random.random(len(low)) < both * alike)

    def rated_sets(self, count: int) -> RatedSets:
        """Which items so many people rated, where that is public; in the order of their serials."""

        def drawn() -> Iterator[list[int]]:
            for at in range(0, count, _AT_ONCE):
                keys = self.random.random((min(_AT_ONCE, count - at), self.items), np.float32)
                yield from keys.argpartition(self.rated - 1)[:, : self.rated].tolist()

        return RatedSets(drawn())

    def lean_alike(self, first: Bytes, second: Bytes, cap: int) -> Bits:
        """With A the sum of h1 x over items where the signs agree, and B where they differ, h1·x = A + B and
        h2·x = A - B: the signs are equal if |A| > |B|, opposite if |A| < |B|, and a coin decides a tie.
        """
        count = len(first)
        classes = self._classes(count)
        agree, differ = np.zeros(count, np.int64), np.zeros(count, np.int64)
        left_items, left_rated = np.full(count, self.items), np.full(count, self.rated)
        for label in range(self.tastes.clusters):
            mask = np.packbits(self.labels == label, bitorder="little")
            likes = self._like[classes, label]
            for total, cells in ((agree, ~(first ^ second)), (differ, first ^ second)):
                for signs, chance in ((first, likes), (~first, 1 - likes)):
                    here = np.bitwise_count(cells & signs & mask).sum(axis=1, dtype=np.int64)
                    rated = self.random.hypergeometric(here, left_items - here, left_rated)
                    left_items -= here
                    left_rated -= rated
                    total += 2 * self.random.binomial(rated, chance) - rated
        lead = np.abs(agree) - np.abs(differ)
        coin = self.random.integers(0, 2, len(lead), dtype=np.int64)
        return np.asarray(np.where(lead == 0, coin == 1, lead > 0))
