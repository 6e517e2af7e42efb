"""A nightly job for a year under one budget: divided over the nights that are left, until it is used up."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh

NIGHTS = 365
USEFUL = Decimal("0.005")  # below this ε the numbers of this shop are too noisy to publish
random = np.random.default_rng(7)
facts = {"euros": eh.Column(bounds=(0, 200), unit="€")}


def sales_of(day: int) -> pd.DataFrame:
    """What 20,000 customers bought on one day."""
    buyers = random.integers(0, 20_000, 30_000)
    return pd.DataFrame({"customer": buyers, "euros": random.gamma(2, 20, len(buyers)).round(2), "day": day})


def publish(day: int, ledger: eh.Ledger, nights_left: int) -> bool:
    """Release one day's turnover; False if the budget does not allow a useful one."""
    epsilon = ledger.each(nights_left)
    if epsilon < USEFUL:
        return False
    ledger.note = f"day {day}"
    sales = eh.read(sales_of(day), user="customer", population="customers", columns=facts)
    turnover = eh.Session(sales, ledger).sum("euros", epsilon=epsilon)
    print(f"day {day}: {turnover.headline()} (ε = {epsilon}, usable: {turnover.usable})")
    return True


with tempfile.TemporaryDirectory() as folder:
    book = eh.Ledger(Path(folder) / "year.db", epsilon=1, delta=1e-6, who="nightly job")
    print(f"each of {NIGHTS} nights may spend ε = {book.each(NIGHTS)}; without δ it would be {1 / NIGHTS:.5f}")
    for day in range(1, 4):
        publish(day, book, NIGHTS - day + 1)
    print("spent after three nights:", book.spent)

    # Somebody asks a large question in between. What is left is divided over the nights that are left.
    audit = eh.Session(eh.read(sales_of(4), user="customer", population="customers", columns=facts), book)
    book.note = "asked by the auditors"
    print(audit.mean("euros", epsilon=Decimal("0.6")).headline())
    print("each of the other nights:", book.each(NIGHTS - 3))
    if not publish(4, book, NIGHTS - 3):
        print("the job stops here: what is left would only buy noise")
    for event in book.events:
        print(event.number, event.asked.who, "|", event.asked.note, "|", event.query["statistic"], event.cost.epsilon)
    book.verify()
