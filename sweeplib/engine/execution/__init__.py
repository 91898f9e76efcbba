"""Execution of a sweep: its plan, the cluster, the blocks of cases and their limits."""
