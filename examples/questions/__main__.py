"""Ask all of them, in SQL, under one budget: ``python examples/questions``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from questions import QUESTIONS, in_sql
from shop import generate, on_duckdb

import evenhand as eh


def main() -> None:
    """Generate a shop, and print each question with its answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder)
        shop = on_duckdb(folder)
        session = eh.Session(shop.sales, eh.Ledger(folder / "budget.db", epsilon=12, delta=1e-5))
        for question in QUESTIONS:
            release = in_sql(question, shop, session)
            print(f"\n{question.title}\n  {question.sql}")
            print(release.table().to_string(index=False) if release.grouped else f"  {release.headline()}")


if __name__ == "__main__":
    main()
