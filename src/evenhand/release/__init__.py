"""The only door out: bounded aggregate + noise + debit → `Release`."""

from evenhand.release.door import Choices, Measurement, Noisy, Opener, Receipt, debit, noise_for, not_private, public
from evenhand.release.intervals import Additive, Ends, Exact, Interval, Ratio, Scaled
from evenhand.release.residuals import ResidualMean
from evenhand.release.result import Bounding, Error, Release

__all__ = [
    "Additive",
    "Bounding",
    "Choices",
    "Ends",
    "Error",
    "Exact",
    "Interval",
    "Measurement",
    "Noisy",
    "Opener",
    "Ratio",
    "Receipt",
    "Release",
    "ResidualMean",
    "Scaled",
    "debit",
    "noise_for",
    "not_private",
    "public",
]
