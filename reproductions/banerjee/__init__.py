"""Reproductions of Banerjee, Hegde and Massoulié, The Price of Privacy in Untrusted Recommendation Engines."""

from reproductions.banerjee import (
    exact,
    maxsense_scaling,
    mirrored,
    pairwise_rich,
    public_rated,
    regimes,
    several_questions,
)

REPRODUCTIONS = {
    "banerjee-maxsense-scaling": maxsense_scaling.reproduce,
    "banerjee-exact": exact.reproduce,
    "banerjee-exact-pairwise": exact.pairwise,
    "banerjee-exact-several": exact.several,
    "banerjee-several-questions": several_questions.reproduce,
    "banerjee-pairwise-rich": pairwise_rich.reproduce,
    "banerjee-public-rated": public_rated.reproduce,
    "banerjee-regimes": regimes.reproduce,
    "banerjee-mirrored": mirrored.reproduce,
}
"""By name: each takes a folder and a size, "small" or "full", and returns an `Outcome`."""
