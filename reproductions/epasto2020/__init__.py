"""Reproductions of Epasto, Mahdian, Mao, Mirrokni and Ren, Smoothly Bounding User Contributions (NeurIPS 2020)."""

from reproductions.epasto2020 import example1, fig1, fig2, logistic, published, table1, theorem3

REPRODUCTIONS = {
    "epasto2020-fig1": fig1.reproduce,
    "epasto2020-fig2": fig2.reproduce,
    "epasto2020-example1": example1.reproduce,
    "epasto2020-table1": table1.reproduce,
    "epasto2020-algorithm2": published.reproduce,
    "epasto2020-logistic": logistic.reproduce,
    "epasto2020-theorem2": theorem3.theorem_2,
    "epasto2020-theorem3": theorem3.reproduce,
}
"""By name: each takes a folder and a size, "small" or "full", and returns an `Outcome`."""
