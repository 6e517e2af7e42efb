"""The strategies: how one user's contribution is bounded, and by how much that user can move the result."""

from evenhand.bounding.auto import Auto, parse_bounding
from evenhand.bounding.centred_interval import CentredInterval
from evenhand.bounding.located_mean import LocatedMean
from evenhand.bounding.norm_clip import NormClip
from evenhand.bounding.row_limit import RowLimit
from evenhand.bounding.smooth_weights import SmoothWeights
from evenhand.bounding.strategy import Contribution, Strategy, Summary, WeightedMean
from evenhand.bounding.total_cap import TotalCap

__all__ = [
    "Auto",
    "CentredInterval",
    "Contribution",
    "LocatedMean",
    "NormClip",
    "RowLimit",
    "SmoothWeights",
    "Strategy",
    "Summary",
    "TotalCap",
    "WeightedMean",
    "parse_bounding",
]
