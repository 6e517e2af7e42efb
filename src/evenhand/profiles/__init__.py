"""What is known about how much users contribute: given, kept by the session, or bought."""

from evenhand.profiles.buckets import Buckets, norm_buckets, row_buckets, total_buckets
from evenhand.profiles.counting import exact_sizes, or_one, public_sizes, users_by_bucket, users_by_place
from evenhand.profiles.extent import CELLS, Extent, extent_of
from evenhand.profiles.location import Location, LocationRequest, locate, location_request
from evenhand.profiles.profile import Basis, Profile
from evenhand.profiles.shelf import EVERY_ROW, About, Shelf, rows_with
from evenhand.profiles.support import Array, Sums, Support, support_of_counts, support_of_histogram
from evenhand.profiles.wanted import Histogram, Wanted, buy, over

__all__ = [
    "CELLS",
    "EVERY_ROW",
    "About",
    "Array",
    "Basis",
    "Buckets",
    "Extent",
    "Histogram",
    "Location",
    "LocationRequest",
    "Profile",
    "Shelf",
    "Sums",
    "Support",
    "Wanted",
    "buy",
    "exact_sizes",
    "extent_of",
    "locate",
    "location_request",
    "norm_buckets",
    "or_one",
    "over",
    "public_sizes",
    "row_buckets",
    "rows_with",
    "support_of_counts",
    "support_of_histogram",
    "total_buckets",
    "users_by_bucket",
    "users_by_place",
]
