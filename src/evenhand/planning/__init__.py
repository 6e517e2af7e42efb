"""Trade-off curves and plans, from the forecasts of the strategies."""

from evenhand.planning.by_group import GroupPlan
from evenhand.planning.models import ModelPlan
from evenhand.planning.plans import Plan, plan
from evenhand.planning.tables import Forecast, ForecastTable

__all__ = ["Forecast", "ForecastTable", "GroupPlan", "ModelPlan", "Plan", "plan"]
