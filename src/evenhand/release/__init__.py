"""The only door out: bounded aggregate + noise + debit → `Release`."""

from evenhand.release.door import Measurement, Noisy, Receipt, debit, noise_for
from evenhand.release.intervals import Additive, Exact, Interval, Ratio, Scaled
from evenhand.release.result import Bounding, Error, Release

__all__ = [
    "Additive",
    "Bounding",
    "Error",
    "Exact",
    "Interval",
    "Measurement",
    "Noisy",
    "Ratio",
    "Receipt",
    "Release",
    "Scaled",
    "debit",
    "noise_for",
]
