"""The strategies: how one user's contribution is bounded, by how much that user can move the result, and which bound is best."""

from evenhand.bounding.auto import MEAN_SHARE, PROFILE_SHARE, Auto, best_mean
from evenhand.bounding.busy_users import BusyUsers, Family, MovedRank, bound_for_quantiles
from evenhand.bounding.centred_interval import CentredInterval
from evenhand.bounding.choice import Choice
from evenhand.bounding.contribution import Bounded, Contribution, MeanContribution, Summary
from evenhand.bounding.cut_distances import (
    UNSEEN,
    CutDistances,
    Distances,
    Moved,
    best_groups_bound,
    best_residual_bound,
    best_rows_bound,
    norms_of,
    part_lost,
    typical_groups,
)
from evenhand.bounding.forecasts import HETEROGENEITY, ROW_SD, Assumptions, Curve, Question
from evenhand.bounding.listing import STRATEGIES, named, offered_names, parse_bounding, register, same_name
from evenhand.bounding.located_mean import ROWS_SHARE, LocatedMean
from evenhand.bounding.lost_by_group import (
    NOT_KNOWN,
    ONCE_EACH,
    Breadth,
    GroupLosses,
    Lost,
    MovedWeight,
    breadth_of_rows,
    fitted_breadths,
    losses_by_group,
)
from evenhand.bounding.mean_bias import MeanBelief, Tilt, with_belief
from evenhand.bounding.norm_clip import NormClip
from evenhand.bounding.over_groups import (
    GroupBound,
    GroupCurve,
    GroupSizes,
    Sizes,
    best_bound,
    concentration,
    finely,
    group_curves,
    l2_of_rows,
    roots,
)
from evenhand.bounding.row_limit import RowLimit
from evenhand.bounding.shrinkage import shrunken_ratios, shrunken_steps
from evenhand.bounding.smooth_weights import SmoothWeights, choose_smooth, smooth_bound, weight_for_average
from evenhand.bounding.strategy import LARGEST_AMOUNT, Norm, Strategy
from evenhand.bounding.total_cap import TotalCap, believed_cap

__all__ = [
    "HETEROGENEITY",
    "LARGEST_AMOUNT",
    "MEAN_SHARE",
    "NOT_KNOWN",
    "ONCE_EACH",
    "PROFILE_SHARE",
    "ROWS_SHARE",
    "ROW_SD",
    "STRATEGIES",
    "UNSEEN",
    "Assumptions",
    "Auto",
    "Bounded",
    "Breadth",
    "BusyUsers",
    "CentredInterval",
    "Choice",
    "Contribution",
    "Curve",
    "CutDistances",
    "Distances",
    "Family",
    "GroupBound",
    "GroupCurve",
    "GroupLosses",
    "GroupSizes",
    "LocatedMean",
    "Lost",
    "MeanBelief",
    "MeanContribution",
    "Moved",
    "MovedRank",
    "MovedWeight",
    "Norm",
    "NormClip",
    "Question",
    "RowLimit",
    "Sizes",
    "SmoothWeights",
    "Strategy",
    "Summary",
    "Tilt",
    "TotalCap",
    "believed_cap",
    "best_bound",
    "best_groups_bound",
    "best_mean",
    "best_residual_bound",
    "best_rows_bound",
    "bound_for_quantiles",
    "breadth_of_rows",
    "choose_smooth",
    "concentration",
    "finely",
    "fitted_breadths",
    "group_curves",
    "l2_of_rows",
    "losses_by_group",
    "named",
    "norms_of",
    "offered_names",
    "parse_bounding",
    "part_lost",
    "register",
    "roots",
    "same_name",
    "shrunken_ratios",
    "shrunken_steps",
    "smooth_bound",
    "typical_groups",
    "weight_for_average",
    "with_belief",
]
