"""What is known about how much users contribute: given, kept by the session, or bought."""

from evenhand.population import (
    Array,
    Buckets,
    Cut,
    CutTotal,
    Population,
    Sums,
    Support,
    evenly,
    norm_buckets,
    row_buckets,
    support_of_counts,
    support_of_histogram,
    sure_part,
    total_buckets,
)
from evenhand.profiles.beyond import added
from evenhand.profiles.centre import FIRST as FIRST_LOOK
from evenhand.profiles.centre import NARROWEST, Look, look_around
from evenhand.profiles.counting import exact_sizes, or_one, public_sizes, users_by_bucket, users_by_place
from evenhand.profiles.extent import CELLS, Extent, Given, extent_of
from evenhand.profiles.location import (
    Location,
    LocationRequest,
    MeanShapes,
    TiltRequest,
    locate,
    location_request,
    mean_shapes,
    tilt_request,
)
from evenhand.profiles.profile import ONE_ROW_EACH, Basis, Profile
from evenhand.profiles.shelf import EVERY_ROW, About, Shelf, rows_with
from evenhand.profiles.wanted import Histogram, Order, Wanted, buy, over

__all__ = [
    "CELLS",
    "EVERY_ROW",
    "FIRST_LOOK",
    "NARROWEST",
    "ONE_ROW_EACH",
    "About",
    "Array",
    "Basis",
    "Buckets",
    "Cut",
    "CutTotal",
    "Extent",
    "Given",
    "Histogram",
    "Location",
    "LocationRequest",
    "Look",
    "MeanShapes",
    "Order",
    "Population",
    "Profile",
    "Shelf",
    "Sums",
    "Support",
    "TiltRequest",
    "Wanted",
    "added",
    "buy",
    "evenly",
    "exact_sizes",
    "extent_of",
    "locate",
    "location_request",
    "look_around",
    "mean_shapes",
    "norm_buckets",
    "or_one",
    "over",
    "public_sizes",
    "row_buckets",
    "rows_with",
    "support_of_counts",
    "support_of_histogram",
    "sure_part",
    "tilt_request",
    "total_buckets",
    "users_by_bucket",
    "users_by_place",
]
