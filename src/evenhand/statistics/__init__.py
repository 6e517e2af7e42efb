"""What can be asked: one file a statistic."""

from evenhand.statistics.cells import CellCount, edge_cells
from evenhand.statistics.columns import draft_columns
from evenhand.statistics.count import draft_count, draft_users
from evenhand.statistics.draft import Draft, Outcome, Preview
from evenhand.statistics.grouped import Grouped, draft_grouped
from evenhand.statistics.keys import UNGROUPED, Keys, parse_by, parse_keys
from evenhand.statistics.mean import draft_mean
from evenhand.statistics.parts import CountPart
from evenhand.statistics.quantiles import draft_quantiles
from evenhand.statistics.request import Request
from evenhand.statistics.selection import parse_groups_per_user
from evenhand.statistics.specs import column_parts, parse_specs
from evenhand.statistics.sum import draft_sum
from evenhand.statistics.users import UsersPart

__all__ = [
    "UNGROUPED",
    "CellCount",
    "CountPart",
    "Draft",
    "Grouped",
    "Keys",
    "Outcome",
    "Preview",
    "Request",
    "UsersPart",
    "column_parts",
    "draft_columns",
    "draft_count",
    "draft_grouped",
    "draft_mean",
    "draft_quantiles",
    "draft_sum",
    "draft_users",
    "edge_cells",
    "parse_by",
    "parse_groups_per_user",
    "parse_keys",
    "parse_specs",
]
