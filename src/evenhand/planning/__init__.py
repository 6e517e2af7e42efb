"""Trade-off curves and plans, from the forecasts of the strategies."""

from evenhand.planning.asking import plan
from evenhand.planning.by_group import GroupPlan
from evenhand.planning.models import ModelPlan
from evenhand.planning.plans import Plan
from evenhand.planning.rows_plan import RowsPlan
from evenhand.planning.selection import SelectionForecast, SelectionPlan
from evenhand.planning.tables import Forecast, ForecastTable

__all__ = [
    "Forecast",
    "ForecastTable",
    "GroupPlan",
    "ModelPlan",
    "Plan",
    "RowsPlan",
    "SelectionForecast",
    "SelectionPlan",
    "plan",
]
