"""Run the benchmark: python -m benchmarks.recommender."""

import sys

from benchmarks.recommender.speed import main

sys.exit(main())
