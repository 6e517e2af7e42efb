"""OpenDP, loaded on first use and only in the parts that are needed.

``opendp.prelude`` would import scikit-learn where that is installed: 1.5 seconds instead of 0.1.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any, TypeAlias

Measurement: TypeAlias = Any
"""A mechanism of OpenDP, which has no type information: called with integers, it draws."""


@lru_cache(maxsize=1)
def opendp() -> SimpleNamespace:
    """The constructors that Evenhand uses."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import l1_distance, l2_distance, linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return SimpleNamespace(
        atom_domain=atom_domain,
        vector_domain=vector_domain,
        l1_distance=l1_distance,
        l2_distance=l2_distance,
        linf_distance=linf_distance,
        max_divergence=max_divergence,
        make_gaussian=make_gaussian,
        make_laplace=make_laplace,
        make_noisy_max=make_noisy_max,
    )
