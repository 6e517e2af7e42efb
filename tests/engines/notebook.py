"""Looks to DuckDB like a Jupyter kernel without ipywidgets; run by test_sources.py in a process of its own."""

import sys
import types

import pyarrow as pa

kernel = types.ModuleType("IPython")
kernel.get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})  # type: ignore[attr-defined]
sys.modules["IPython"] = kernel
sys.modules["ipywidgets"] = None  # type: ignore[assignment]
del sys.modules["__main__"].__file__

import duckdb  # noqa: E402

import evenhand as eh  # noqa: E402

try:
    duckdb.connect().execute("SET enable_progress_bar = false")
    print("not a notebook")
except duckdb.InvalidInputException:
    print(eh.read(pa.table({"u": [1]}), user="u").columns)
