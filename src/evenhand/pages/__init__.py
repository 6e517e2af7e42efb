"""Everything that becomes HTML or a picture: releases, plans, model cards, simulations; one style."""

from evenhand.pages.card import card_page
from evenhand.pages.charts import FORMATS, save
from evenhand.pages.numbers import five_digit_range, five_digits, rounded, three_digits
from evenhand.pages.plan import plan_chart, plan_page
from evenhand.pages.release import release_chart, release_fragment, release_page
from evenhand.pages.simulation import quality_chart, wrong_chart
from evenhand.pages.terminal import small_curve

__all__ = [
    "FORMATS",
    "card_page",
    "five_digit_range",
    "five_digits",
    "plan_chart",
    "plan_page",
    "quality_chart",
    "release_chart",
    "release_fragment",
    "release_page",
    "rounded",
    "save",
    "small_curve",
    "three_digits",
    "wrong_chart",
]
