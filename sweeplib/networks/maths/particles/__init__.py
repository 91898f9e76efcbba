"""Particles: student units that are independent given the teacher's fields and the norm of the rest of the input.

`inputs` has nodes of the law of the input, by the `rules` of integration; `smoothing` the means of activations over the
direction of the rest, and `self_terms` those of a unit with itself. `kernels/particle_flow` uses them.
"""
