"""Upkeep of results: they are verified and repaired, single cases are reproduced, stale files are pruned."""
