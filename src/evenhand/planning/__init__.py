"""Contribution profiles, error forecasts, and the private choice of the bound."""

from evenhand.planning.buckets import Buckets, row_buckets, total_buckets
from evenhand.planning.caps import PROFILE_SHARE, choose_total_cap
from evenhand.planning.choice import Choice

__all__ = ["PROFILE_SHARE", "Buckets", "Choice", "choose_total_cap", "row_buckets", "total_buckets"]
