"""Reproductions of Rameshwar and Tandon, Bounding User Contributions for User-Level Private Mean Estimation (2024)."""

from reproductions.rameshwar2024 import figures

REPRODUCTIONS = {"rameshwar2024-fig2": figures.figure_2, "rameshwar2024-fig3": figures.figure_3}
"""By name: each takes a folder and a size, "small" or "full", and returns an `Outcome`."""
