"""Run the benchmark: python -m benchmarks.service."""

import sys

from benchmarks.service.load import main

sys.exit(main())
