"""Particles: student units that are independent given the teacher's fields and the norm of the rest of the input."""
