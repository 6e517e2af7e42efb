"""What can be asked: one file a statistic."""

from evenhand.statistics.count import draft_count, draft_users
from evenhand.statistics.draft import Draft, Outcome, Preview
from evenhand.statistics.mean import draft_mean
from evenhand.statistics.request import Request
from evenhand.statistics.sum import draft_sum

__all__ = ["Draft", "Outcome", "Preview", "Request", "draft_count", "draft_mean", "draft_sum", "draft_users"]
