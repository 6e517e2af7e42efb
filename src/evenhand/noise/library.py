"""OpenDP's samplers, loaded on first use and only in the parts that are needed.

``opendp.prelude`` would import scikit-learn where that is installed: 1.5 seconds instead of 0.1. ``T=int`` would mean
32 bits in OpenDP and saturate silently at large scales; every type below is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Draw = Callable[[list[int]], Any]
"""A mechanism of OpenDP, which has no type information: called with integers, it draws."""


@lru_cache(maxsize=1)
def opendp() -> Mapping[str, Callable[[float], Draw]]:
    """How to make the sampler of a distribution for one scale."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import l1_distance, l2_distance, linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))
    return {
        "laplace": lambda scale: make_laplace(integers, l1_distance(T="i64"), scale=scale),
        "gaussian": lambda scale: make_gaussian(integers, l2_distance(T="f64"), scale=scale),
        "noisy max": lambda scale: make_noisy_max(integers, linf_distance(T="i64"), max_divergence(), scale=scale),
    }


@lru_cache(maxsize=256)
def sampler(name: str, scale: float) -> Draw:
    """A sampler, kept: making one costs 0.1 ms."""
    return opendp()[name](scale)
