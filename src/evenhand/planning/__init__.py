"""Trade-off curves and plans, from the forecasts of the strategies."""

from evenhand.planning.plans import Plan, plan
from evenhand.planning.tables import Forecast, ForecastTable
from evenhand.planning.terminal import small_curve

__all__ = ["Forecast", "ForecastTable", "Plan", "plan", "small_curve"]
