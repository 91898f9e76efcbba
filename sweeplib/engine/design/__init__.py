"""The design of a sweep: its axes, expressions, grid, dynamics and analyses."""
