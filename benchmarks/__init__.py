"""Benchmarks: figures as ratios against the bare engine, an oracle or a peer, in the same run. See README.md."""
