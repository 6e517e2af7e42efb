"""Parameters as a careful reader of each documentation would set them, without looking at the table.

Where the documentation says to use what one knows of the domain, the analyst is taken to guess well: the round number (1, 2, 5,
10, ...) next to the true 95% quantile over users ("most users fall below it") of rows, of groups, of rows in a group. For hidden keys the number of groups
per user is the one of the documentation's own example; larger ones find less.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers.hindsight import Pairs, Parameters
from benchmarks.peers.questions import Question
from benchmarks.peers.tables import Table


def round_number(value: float) -> int:
    """The nearest of 1, 2, 5, 10, 20, 50, ... on a logarithmic scale."""
    options = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
    return min(options, key=lambda option: abs(math.log(option / max(value, 1))))


def guesses(pairs: Pairs) -> tuple[int, int, int]:
    """Rows per user, groups per user, rows per user and group."""
    rows, groups = np.bincount(pairs.user, weights=pairs.rows), np.bincount(pairs.user)
    rows_high, groups_high, cell_high = (float(np.quantile(each, 0.95)) for each in (rows, groups, pairs.rows))
    return round_number(rows_high), round_number(groups_high), round_number(cell_high)


def pipeline_dp(question: Question, table: Table) -> list[Parameters]:
    """The examples set both limits by hand; for counts by group there is ``calculate_private_contribution_bounds``.

    It gets a tenth of ε. Selection of keys is left at its default, truncated geometric; noise at its default, Laplace, except from 100
    groups on, where the example on tuning uses Gaussian noise.
    """
    _, groups, linf = guesses(Pairs.of(question, table))
    gaussian = question.groups(table) >= 100 and not question.hidden
    given: Parameters = {"l0": groups, "linf": linf, "noise": "gaussian" if gaussian else "laplace"}
    if question.statistic == "users":
        given["linf"] = 1
    if question.hidden:
        given |= {"selection": "truncated geometric", "l0": 2}  # the README's example of films
    elif question.by and question.statistic in ("count", "users"):
        given["choose"] = 0.1
    return [given]


def opendp(question: Question, table: Table) -> list[Parameters]:
    """ "Essential Statistics" says to estimate a bound as a private 95% quantile over widely spaced candidates; "Identifier
    Truncation and Bounds" says to aggregate to one row per user where possible. ε is split evenly, as its contexts do it."""
    if question.hidden:
        return [{"rows": 10, "linf": 1}]  # "Truncating Contributed Groups"
    _, _, linf = guesses(Pairs.of(question, table))
    return [{"linf": 1 if question.statistic == "users" else linf}]


def tumult(question: Question, table: Table) -> list[Parameters]:
    """ "Working with privacy IDs" limits rows per ID for counts and groups per ID for users, by hand; "Numerical aggregations" says
    that most users should fall below; "Privacy budget fundamentals" calls pure DP a good default."""
    if question.hidden:
        return [{"l0": 5, "linf": 1}]  # "More constraints"
    rows, groups, _ = guesses(Pairs.of(question, table))
    return [{"l0": groups, "linf": 1}] if question.statistic == "users" else [{"rows": rows}]
