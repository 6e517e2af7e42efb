"""Speed of releases against the bare engine and against peers, in one run."""
