"""Contribution profiles, error forecasts, and the private choice of the bound."""

from evenhand.planning.buckets import Buckets, row_buckets, total_buckets
from evenhand.planning.caps import PROFILE_SHARE, choose_total_cap
from evenhand.planning.choice import Choice
from evenhand.planning.location import Location, LocationRequest, locate, location_request
from evenhand.planning.means import MEAN_SHARE, choose_mean, smooth_weights_for_mean
from evenhand.planning.plans import Plan, plan
from evenhand.planning.profile import Basis, Profile
from evenhand.planning.support import support_of_counts, support_of_histogram
from evenhand.planning.tables import Forecast, ForecastTable
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
    "Basis",
    "Buckets",
    "Choice",
    "Forecast",
    "ForecastTable",
    "Location",
    "LocationRequest",
    "Plan",
    "Profile",
    "Support",
    "centred_bound",
    "choose_mean",
    "choose_total_cap",
    "locate",
    "location_request",
    "plan",
    "quantile_bound",
    "row_buckets",
    "row_limit_bound",
    "smooth_bound",
    "smooth_weights_for_mean",
    "support_of_counts",
    "support_of_histogram",
    "total_buckets",
]
