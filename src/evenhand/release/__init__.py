"""The only door out: bounded aggregate + noise + debit → `Release`."""

from evenhand.release.believed import Believed, Unknown
from evenhand.release.described import Bounding, Error
from evenhand.release.door import Choices, Measurement, Noisy, Opener, Receipt, debit, noise_for, not_private, public
from evenhand.release.intervals import Additive, Ends, Exact, Interval, Quotient, Ratio, ResidualMean, Scaled
from evenhand.release.result import Release
from evenhand.release.verdicts import NothingFound, OfDeviation, OfQuantiles, OfSize, OfSpread, Rule, Verdict
from evenhand.release.written import load

__all__ = [
    "Additive",
    "Believed",
    "Bounding",
    "Choices",
    "Ends",
    "Error",
    "Exact",
    "Interval",
    "Measurement",
    "Noisy",
    "NothingFound",
    "OfDeviation",
    "OfQuantiles",
    "OfSize",
    "OfSpread",
    "Opener",
    "Quotient",
    "Ratio",
    "Receipt",
    "Release",
    "ResidualMean",
    "Rule",
    "Scaled",
    "Unknown",
    "Verdict",
    "debit",
    "load",
    "noise_for",
    "not_private",
    "public",
]
