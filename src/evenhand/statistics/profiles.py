"""Profiles of a table's users: given by the analyst, kept by the session, or bought out of a release's ε."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from evenhand.bounding import Auto
from evenhand.guarantee import UsageError, split
from evenhand.ledger import Ledger
from evenhand.planning import Basis, Buckets, Profile, row_buckets
from evenhand.release import Measurement, Receipt, debit
from evenhand.statistics.request import Request
from evenhand.statistics.shelf import About
from evenhand.statistics.totals import bucket_counts
from evenhand.tables.summaries import per_user


@dataclass(frozen=True)
class Known:
    """A histogram of users that may be used: its counts, the ε that bought them, what is left and what was paid now."""

    counts: Sequence[float]
    epsilon: float
    left: Decimal
    paid: Decimal
    basis: str = "a noisy histogram of users by contribution, bought with part of ε"


def settled(request: Request, about: About) -> Request:
    """The request with the profile that will choose its bound, if one was given or is kept.

    Decided before the debit, so that preview, event and release name the same purchase, whatever other threads buy
    meanwhile.
    """
    return with_known(request, request.shelf.find(request.table, about))


def with_known(request: Request, kept: Profile | None) -> Request:
    """The request with the analyst's profile, or the kept one, where a bound is chosen and row counts are not public."""
    if request.relation.counts_are_public or not isinstance(request.bounding, Auto):
        return request
    return replace(request, known=given_profile(request) or kept)


def known_histogram(
    request: Request, receipt: Receipt, measurement: Measurement, buckets: Buckets, about: About, share: Any
) -> Known:
    """A histogram of users: from the profile that a `settled` request knows, or bought now."""
    profile = request.known
    if profile is not None:
        if given_profile(request) is None:
            request.shelf.take(request.table, about)
        counts, epsilon = histogram_of(profile, buckets)
        return Known(counts, epsilon, request.epsilon, Decimal(0), profile.words)
    paid, left = split(request.epsilon, share)
    noisy = receipt.numbers(measurement, paid).values
    shelve(request, about, buckets, noisy, paid, receipt.event)
    return Known(noisy, float(paid), left, paid)


def shelve(request: Request, about: About, buckets: Buckets, noisy: Sequence[int], paid: Decimal, event: str) -> None:
    """Keep what was bought by a debit for later releases of the session, which will name it."""
    profile = Profile.bought(buckets, noisy, request.table.guarantee(paid, Decimal(0)), event)
    request.shelf.put(request.table, about, profile)


def buy_profile(request: Request, ledger: Ledger) -> Profile:
    """A noisy histogram of users by number of rows, as a release of its own."""
    buckets, users = row_buckets(), per_user(request.table)
    guarantee = request.guarantee()
    receipt = debit(ledger, guarantee, request.pure(), {"statistic": "profile", "buckets": buckets.size})
    noisy = receipt.numbers(bucket_counts(request.table, users, users.rows, buckets), request.epsilon)
    return Profile.bought(buckets, noisy.values, guarantee, receipt.event)


def given_profile(request: Request) -> Profile | None:
    """The profile that the analyst gave with ``Auto(profile=...)``, if it may be used."""
    auto = request.bounding
    if not isinstance(auto, Auto) or auto.profile is None:
        return None
    if not isinstance(auto.profile, Profile):
        raise UsageError(f"Auto(profile={type(auto.profile).__name__}): expected an eh.Profile.")
    if auto.profile.basis is Basis.EXACT:
        raise UsageError(
            "Auto(profile=...) was given an exact profile, which is NOT PRIVATE: a bound chosen from it would leak. "
            "Buy one with session.profile(epsilon=...), or state a public prior such as eh.Profile.pareto(...)."
        )
    return auto.profile


def histogram_of(profile: Profile, buckets: Buckets) -> tuple[Sequence[float], float]:
    """A profile as counts over ``buckets``, and the ε that explains their noise; a public prior has none."""
    if profile.noisy is not None and profile.guarantee is not None and profile.buckets == buckets:
        return profile.noisy, float(profile.guarantee.epsilon)
    counts = [0.0] * buckets.size
    for place, users in zip(
        buckets.index(np.ceil(profile.support.sizes).astype(np.int64)), profile.support.users, strict=True
    ):
        counts[int(place)] += float(users)
    return counts, 1e6
