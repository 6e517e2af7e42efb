"""Reproductions of Amin, Kulesza, Muñoz Medina and Vassilvitskii, Bounding User Contributions (ICML 2019)."""

from reproductions.amin2019 import fig1, fig2, fig3

REPRODUCTIONS = {
    "amin2019-fig1": fig1.reproduce,
    "amin2019-fig2": fig2.reproduce,
    "amin2019-fig3": fig3.reproduce,
}
"""By name: each takes a folder and a size, "small" or "full", and returns an `Outcome`."""
