"""Two tables about the same people share one ledger, until the budget is used up."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh

random = np.random.default_rng(5)
people = np.arange(3_000)
orders = pd.DataFrame({"customer": np.repeat(people, np.ceil(random.lognormal(1, 1, 3_000)).astype(int))})
orders["euros"] = random.gamma(2, 20, len(orders)).round(2)
calls = pd.DataFrame({"caller": np.repeat(people, random.geometric(0.3, 3_000))})

with tempfile.TemporaryDirectory() as folder:
    ledger = eh.Ledger(Path(folder) / "budget.db", epsilon=1)
    shop = eh.Session(eh.read(orders, user="customer", population="our customers"), ledger)
    hotline = eh.Session(eh.read(calls, user="caller", population="our customers"), ledger)

    print(shop.mean("euros", bounds=(0, 500), epsilon=0.5).headline())
    print(hotline.count(epsilon=0.3).headline())
    print("left for these people:", ledger.remaining)
    print("can it be afforded?", hotline.preview.users(epsilon=0.3).affordable)
    try:
        hotline.users(epsilon=0.3)
    except eh.BudgetExceeded:
        print("refused: 0.5 + 0.3 + 0.3 is more than the total of 1")
    for event in ledger.events:
        print(event.number, event.query["statistic"], event.cost.epsilon)
    ledger.verify()
