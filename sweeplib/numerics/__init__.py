"""Numerical tools that know nothing of networks: random numbers, elementary functions, compilation, integrators."""
