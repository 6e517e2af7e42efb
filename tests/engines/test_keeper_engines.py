"""A keeper.toml whose table is read by Spark, or with everything in Postgres: the table, its ledger, and the accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.service import config
from evenhand.service.accounts import Account, Role
from evenhand.service.answers import Desks

ANN = Account("ann", Role.ANALYST)
FILE = """
accounts = "{accounts}"

[populations.people]
ledger = "{ledger}"
epsilon = 90

[tables.visits]
source = "{source}"
{more}
user = "u"
population = "people"
rows = 2000

[tables.visits.views.high]
where = "v >= 3"

[analysts.ann]
epsilon = 80
immediate = true
"""
ROWS = [{"u": user, "v": float(user % 7)} for user in range(400) for _ in range(2)]


def value(desks: Desks, table: str, question: dict[str, Any]) -> Any:
    asked = {"table": table, "key": f"{table} {question['ask']}", "question": question}
    return desks.ask(ANN, asked, wait=120)["answer"]


def opened(folder: Path, source: str, more: str, ledger: str = "budget.db", accounts: str = "accounts.db") -> Desks:
    file = folder / "keeper.toml"
    file.write_text(FILE.format(source=source, more=more, ledger=ledger, accounts=accounts))
    keeper = config.load(file).keeper
    keeper.lock()
    return Desks(keeper)


def test_everything_in_postgres(postgres_url: str, tmp_path: Path) -> None:
    import ibis

    ibis.connect(postgres_url).create_table("visits", pa.Table.from_pylist(ROWS))
    desks = opened(tmp_path, postgres_url, 'table = "visits"', postgres_url, postgres_url)
    count = {"ask": "count", "epsilon": "8", "bounding": {"strategy": "TotalCap", "T": 2}}
    assert abs(value(desks, "visits.high", count)["value"] - 456) < 100
    bought = value(desks, "visits", {"ask": "profile", "epsilon": "8"})["profile"]
    assert abs(eh.Profile.from_dict(bought).users - 400) < 100
    assert desks.budget(ANN)["yours"]["spent"] == [{"epsilon": "16", "delta": "0"}]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_table_that_spark_reads(spark: None, tmp_path: Path) -> None:
    pd.DataFrame(ROWS).to_parquet(tmp_path / "visits.parquet")
    desks = opened(tmp_path, "visits.parquet", 'engine = "spark"')
    assert abs(value(desks, "visits.high", {"ask": "users", "epsilon": "8"})["value"] - 228) < 10


def test_an_engine_that_is_none_is_pointed_at(tmp_path: Path) -> None:
    pd.DataFrame(ROWS).to_parquet(tmp_path / "visits.parquet")
    with pytest.raises(eh.EvenhandError, match=r"line 10: .*'sparc'.*spark"):
        opened(tmp_path, "visits.parquet", 'engine = "sparc"')
