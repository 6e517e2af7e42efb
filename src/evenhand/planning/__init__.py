"""Contribution profiles, error forecasts, and the private choice of the bound."""

from evenhand.planning.buckets import Buckets, row_buckets, total_buckets
from evenhand.planning.caps import PROFILE_SHARE, choose_total_cap
from evenhand.planning.choice import Choice
from evenhand.planning.location import Location, LocationRequest, locate, location_request
from evenhand.planning.means import MEAN_SHARE, choose_mean
from evenhand.planning.support import support_of_counts, support_of_histogram
from evenhand.planning.weights import (
    Support,
    centred_bound,
    quantile_bound,
    row_limit_bound,
    smooth_bound,
)

__all__ = [
    "MEAN_SHARE",
    "PROFILE_SHARE",
    "Buckets",
    "Choice",
    "Location",
    "LocationRequest",
    "Support",
    "centred_bound",
    "choose_mean",
    "choose_total_cap",
    "locate",
    "location_request",
    "quantile_bound",
    "row_buckets",
    "row_limit_bound",
    "smooth_bound",
    "support_of_counts",
    "support_of_histogram",
    "total_buckets",
]
