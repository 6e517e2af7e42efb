"""What can be asked: one file per statistic, and one list of them."""

from evenhand.statistics.asking import By, ask_columns, ask_one, ask_together, of_columns
from evenhand.statistics.ball import BallMean
from evenhand.statistics.beside import ask_beside
from evenhand.statistics.count import Count
from evenhand.statistics.distinct import Distinct
from evenhand.statistics.draft import Draft, Outcome, Preview
from evenhand.statistics.histogram import Histogram
from evenhand.statistics.listing import STATISTICS, register
from evenhand.statistics.mean import Mean
from evenhand.statistics.per_user_mean import PerUserMean
from evenhand.statistics.quantiles import Median, Quantiles
from evenhand.statistics.ratio import RatioOf
from evenhand.statistics.request import Request
from evenhand.statistics.share import Share, ShareOfRows
from evenhand.statistics.statistic import Estimate, OfColumn, Statistic
from evenhand.statistics.sum import Sum
from evenhand.statistics.top import Top
from evenhand.statistics.users import Users
from evenhand.statistics.variance import Std, Variance

__all__ = [
    "STATISTICS",
    "BallMean",
    "By",
    "Count",
    "Distinct",
    "Draft",
    "Estimate",
    "Histogram",
    "Mean",
    "Median",
    "OfColumn",
    "Outcome",
    "PerUserMean",
    "Preview",
    "Quantiles",
    "RatioOf",
    "Request",
    "Share",
    "ShareOfRows",
    "Statistic",
    "Std",
    "Sum",
    "Top",
    "Users",
    "Variance",
    "ask_beside",
    "ask_columns",
    "ask_one",
    "ask_together",
    "of_columns",
    "register",
]
