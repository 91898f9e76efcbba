"""Benchmarks of sweeplib: `make bench`."""
