"""Reproductions of Amin, Muñoz Medina, Kulesza and Vassilvitskii, Bias Variance Trade-off in Differential Privacy (2018)."""

from reproductions.amin2018 import corollary1, lemma1, theorem1

REPRODUCTIONS = {
    "amin2018-lemma1": lemma1.reproduce,
    "amin2018-theorem1": theorem1.reproduce,
    "amin2018-corollary1": corollary1.reproduce,
}
"""By name: each takes a folder and a size, "small" or "full", and returns an `Outcome`."""
