"""Numerical tools independent of networks: random numbers, elementary functions, compilation, integrators."""
