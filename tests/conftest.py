"""Fixtures that every test may use, and how hard the property tests search."""

from __future__ import annotations

import gc
import os
import shutil
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["chromium", "postgres"]

# HYPOTHESIS_PROFILE=thorough searches for minutes; the default keeps the whole run short. Exact comparisons can't
# raise a false alarm, so each run may search elsewhere.
for name, examples in (("quick", 6), ("thorough", 1000)):
    settings.register_profile(name, max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that judge chance take long: they are of the thorough run."""
    for item in items:
        if "statistical" in item.path.parts:
            item.add_marker(pytest.mark.thorough)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later search for garbage: in the neighbour tests it took 9% of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # DuckDB reports as leaked what is never collected


@pytest.fixture(scope="session")
def spark() -> Iterator[None]:
    """The one local Spark session of the run; ``engine="spark"`` finds it. Mark such tests with the xdist group "spark"."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine (Debian: apt-get install default-jre-headless)")
    # Thousands of small queries, each planned once: the optimising compiler of Java never earns its time back.
    quick = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", quick)
    from evenhand.tables.engines.spark_session import spark_backend

    backend = spark_backend()
    yield
    backend._session.stop()


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")])])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that runs paths."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what did not run because something is missing on this machine: a green run must not look like a full one."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple):
            reasons[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1
    missing = {
        reason: times for reason, times in reasons.items() if reason.startswith(("no ", "needs ", "could not import"))
    }
    if missing:
        terminalreporter.section("NOT RUN: something is missing on this machine")
        for reason, times in sorted(missing.items()):
            terminalreporter.line(f"{times:>6} tests: {reason}")
