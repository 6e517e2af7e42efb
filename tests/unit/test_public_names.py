"""What people type. A change here is a change of the public interface and belongs in CHANGELOG.md."""

from __future__ import annotations

import subprocess
import sys

import evenhand as eh

NAMES = """
Auto BudgetExceeded CentredInterval Column DataError EngineError EvenhandError Guarantee Ledger LedgerError NormClip Plan Profile
Release RowLimit Session SmoothWeights Table TotalCap UsageError connect count limit_duckdb load mean median per_user_mean plan quantiles ratio read read_part read_public share
std sum users variance _
"""


def test_the_public_names_are_these() -> None:
    assert sorted(eh.__all__) == sorted(NAMES.split())
    assert all(hasattr(eh, name) for name in eh.__all__)


def test_questions_are_these() -> None:
    asked = (
        "aggregate ask count describe distinct histogram mean median per_user_mean profile quantiles ratio share sql std sum top users variance "
        "preview table ledger"
    )
    session = {name for name in dir(eh.Session) if not name.startswith("_")} | {"table", "ledger"}
    assert session == set(asked.split())


def test_errors_form_one_tree() -> None:
    assert issubclass(eh.UsageError, eh.EvenhandError)
    assert issubclass(eh.UsageError, ValueError)
    assert issubclass(eh.BudgetExceeded, eh.EvenhandError)
    assert issubclass(eh.EngineError, eh.DataError)
    assert issubclass(eh.LedgerError, eh.DataError)
    codes = {
        error.__name__: error.exit_code for error in (eh.UsageError, eh.BudgetExceeded, eh.DataError, eh.LedgerError)
    }
    assert codes == {"UsageError": 2, "BudgetExceeded": 3, "DataError": 4, "LedgerError": 4}


def test_importing_loads_nothing_heavy() -> None:
    """Heavy libraries load when first needed; the time itself is measured by ``make bench``."""
    heavy = "pandas scipy sklearn ibis altair sqlalchemy opendp pyspark polars duckdb pyarrow"
    code = f"import sys, evenhand; print(*[name for name in {heavy.split()} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
