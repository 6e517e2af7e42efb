"""OpenDP, loaded on first use and only in the parts that are needed.

``opendp.prelude`` would import scikit-learn where that is installed: 1.5 seconds instead of 0.1.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace


@lru_cache(maxsize=1)
def opendp() -> SimpleNamespace:
    """The constructors of domains, measurements, measures and metrics."""
    from opendp import domains, measurements, measures, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    return SimpleNamespace(**(vars(domains) | vars(measurements) | vars(measures) | vars(metrics)))
