"""Numerical tools independent of networks: random numbers, elementary functions, compilation, integrators.

`random` and `low_discrepancy` draw numbers; `elementary`, `arc_sine` and `bits` have functions without branches;
`compiled` makes kernels of templates by `binding`, and `inner_functions`, `cache`, `sound_cache`, `packed_arguments`
and `vectors` serve it; `integrators` solves differential equations.
"""
