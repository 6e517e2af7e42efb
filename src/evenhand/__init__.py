"""Evenhand: statistics and models about people under user-level differential privacy."""
