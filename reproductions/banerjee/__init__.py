"""Reproductions of Banerjee, Hegde and Massoulié, The Price of Privacy in Untrusted Recommendation Engines."""

from reproductions.banerjee import maxsense_scaling, mirrored, pairwise_rich, regimes

REPRODUCTIONS = {
    "banerjee-maxsense-scaling": maxsense_scaling.reproduce,
    "banerjee-pairwise-rich": pairwise_rich.reproduce,
    "banerjee-regimes": regimes.reproduce,
    "banerjee-mirrored": mirrored.reproduce,
}
"""By name: each takes a folder and a size, "small" or "full", and returns an `Outcome`."""
