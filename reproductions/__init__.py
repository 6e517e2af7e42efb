"""The papers' figures and tables, again: a folder per paper, each with the numbers to expect and their tolerance."""
