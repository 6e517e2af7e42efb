"""One BLAS thread for many small products.

The linear algebra here is small or bound by memory, and a BLAS whose threads wait for each other on busy cores slows it
down tenfold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep BLAS to one thread for a while."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
