"""What is known about people: buckets, lists of users, and the plausible tables behind a noisy histogram of them."""

from evenhand.population.buckets import Buckets, norm_buckets, row_buckets, total_buckets
from evenhand.population.cut import Cut, CutTotal, sure_part
from evenhand.population.support import Array, Sums, Support, support_of_counts, support_of_histogram
from evenhand.population.tables import Population, evenly

__all__ = [
    "Array",
    "Buckets",
    "Cut",
    "CutTotal",
    "Population",
    "Sums",
    "Support",
    "evenly",
    "norm_buckets",
    "row_buckets",
    "support_of_counts",
    "support_of_histogram",
    "sure_part",
    "total_buckets",
]
