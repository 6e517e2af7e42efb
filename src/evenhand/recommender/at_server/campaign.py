"""A campaign: one task from the server's side, from the first token to the published model."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator
from decimal import Decimal

import numpy as np

from evenhand.guarantee import Amount, DataError, UsageError, parse_epsilon
from evenhand.recommender.at_server.clustering import cluster
from evenhand.recommender.at_server.fold import Fold
from evenhand.recommender.at_server.sketches import RatedSets, sketch_for
from evenhand.recommender.at_server.tokens import SECRET_SIZE, Issuer
from evenhand.recommender.messages import DEFAULT_SKETCH, PublishedModel, Query, Task, Token, find_sketch
from evenhand.recommender.messages.model import is_second_round
from evenhand.recommender.tuning import best_questions, best_theta, pool_size


class Campaign:
    """Learns clusters of items from one randomised report per person.

    Guarantee:
        Every report is ε-private before it reaches this object; nothing done here can weaken that.

    Args:
        items: the catalogue, 2 to 65,536 different names.
        sketch: a name from the list `messages.SKETCHES`; `plan` says which suits.
        epsilon: the ε of one person's report.
        rated: how many ratings w a person is expected to have; who has more subsamples at home.
        users: how many people may answer: as many tokens exist.
        pool: how many different queries; None for one each, "auto" for as few as cost no accuracy.
        theta: a sensing query draws each item θ/w times on average; None for the best.
        questions: bits per report, for sketches that may ask several; None for the best.
        public_rated: which items people rated is public, and only their likes are protected; for sketches that allow it.
        epoch: tells apart campaigns that are otherwise the same. A person answers each campaign once.
        secret: 32 bytes that tokens are made with; None draws them.

    Example:
        >>> campaign = Campaign(items=["alien", "brazil", "casablanca"], epsilon=1.0, rated=2, users=100)
        >>> task = campaign.open()
        >>> str(campaign.token(0)).startswith(task.short_id.hex())
        True
    """

    def __init__(
        self,
        items: Iterable[str],
        sketch: str = DEFAULT_SKETCH,
        epsilon: Amount = 1,
        rated: int = 40,
        *,
        users: int = 1_000_000,
        pool: int | str | None = None,
        theta: Amount | None = None,
        questions: int | None = None,
        public_rated: bool = False,
        epoch: str = "1",
        secret: bytes | None = None,
    ) -> None:
        catalogue = tuple(items)
        exact = parse_epsilon(epsilon)
        kind = find_sketch(sketch)
        set_theta = None if theta is None else parse_epsilon(theta, "theta")
        if kind.senses:
            set_theta = min(set_theta or best_theta(), Decimal(max(1, rated)))
        if questions is None:
            questions = best_questions(exact, len(catalogue), rated, set_theta or Decimal(1)) if kind.several else 1
        if isinstance(pool, str):
            if pool != "auto":
                raise UsageError(f"pool={pool!r} is unknown; expected a number of queries, None or 'auto'.")
            pool = pool_size(len(catalogue), rated, users)
        queries = users if pool is None else pool
        self.task = Task(
            items=catalogue,
            sketch=sketch,
            epsilon=exact,
            rated=rated,
            tokens=users,
            pool=queries,
            theta=set_theta,
            questions=questions,
            public_rated=public_rated,
            epoch=epoch,
        )
        self.secret = secrets.token_bytes(SECRET_SIZE) if secret is None else secret
        self.issuer = Issuer(self.task, self.secret)

    @classmethod
    def resume(cls, task: Task, secret: bytes) -> Campaign:
        """The campaign of a task made earlier."""
        campaign = cls.__new__(cls)
        campaign.task, campaign.secret, campaign.issuer = task, secret, Issuer(task, secret)
        return campaign

    def token(self, serial: int) -> Token:
        """The token with this serial: hand each to one person, before the beacon is known."""
        return self.issuer.token(serial)

    def tokens(self, first: int = 0, count: int | None = None) -> Iterator[Token]:
        """Tokens with serials from ``first`` on; all of them unless ``count`` is given."""
        return self.issuer.tokens(first, self.task.tokens - first if count is None else count)

    def open(self, beacon: str | None = None) -> Task:
        """Publish the beacon, and with it everyone's query. Do this once, after the tokens are out.

        Args:
            beacon: public randomness that nobody could know before, such as a lottery draw; its hash is used.
                None draws it here, which shows that no client chose its query, but not that the server did not.
        """
        if self.task.beacon is not None:
            raise UsageError("The task is open already: its beacon can't change.")
        try:
            seed = secrets.token_bytes(32) if beacon is None else beacon.encode()
        except UnicodeEncodeError:
            raise UsageError("The beacon is not a text that UTF-8 can write: publish one that is.") from None
        self.task = self.task.opened(hashlib.sha256(seed).digest())
        return self.task

    def query(self, serial: int) -> Query:
        """What the server says this token's query is, for the client to check.

        With public rated items there is no such statement: the pair asked about depends on what the person rated,
        and a client that compared it would tell by its answer.
        """
        if not 0 <= serial < self.task.tokens:
            raise UsageError(f"serial={serial} is out of range: expected 0 to {self.task.tokens - 1}.")
        if self.task.public_rated:
            raise UsageError("With public rated items no query is stated: clients derive it, and check nothing.")
        encoded = sketch_for(self.task).encode(self.task.query_number(serial))
        return Query(self.task.short_id, serial, hashlib.sha256(encoded).digest())

    def fold(self, rated: RatedSets | None = None) -> Fold:
        """An empty fold that accepts this campaign's tokens."""
        return Fold(self.task, self.issuer, rated)

    def publish(self, fold: Fold, clusters: int | None = None) -> PublishedModel:
        """The model learnt from a fold of this campaign."""
        if fold.task.id != self.task.id:
            raise UsageError("The fold is of another campaign.")
        return publish(fold, clusters)


def publish(fold: Fold, clusters: int | None = None) -> PublishedModel:
    """Cluster the items and say what is known about them.

    Guarantee:
        Post-processing of reports that are private already: publishing costs no ε.

    Edge cases:
        A model in which nothing stood out of the noise says so in its notes. Without any report there is no model.

    Args:
        clusters: how many clusters; None to choose from the sums and their known noise.
    """
    if not fold.counts.accepted:
        raise DataError("No report was accepted yet: there is nothing to publish.")
    task, reports = fold.task, fold.counts.accepted
    reading = fold.sketch.reading(fold.sums(), clusters)
    labels = tuple(cluster(reading, clusters).tolist())
    guesses = (
        f"Nothing stood out of the noise of {reports} reports: the clusters below are guesses. "
        "More people, or a larger ε, are needed."
    )
    embedding = () if reading.embedding is None else tuple(map(tuple, np.round(reading.embedding, 6).tolist()))
    popularity = () if reading.popularity is None else tuple(np.round(reading.popularity, 6).tolist())
    notes = () if reading.signals else (guesses,)
    if is_second_round(task):  # likes of one side, of which the other's are the opposite: an axis, and no popularity
        embedding, popularity = tuple((round(2 * rate - 1, 6),) for rate in popularity), ()
    return PublishedModel(
        task.id, task.items, labels, embedding, popularity, reports, task.epsilon, task.public_rated, notes
    )
