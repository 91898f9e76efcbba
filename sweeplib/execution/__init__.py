"""How a sweep runs: its plan, the cluster, the blocks of cases and their limits."""
