"""What a sweep asks for: its axes, expressions, grid, dynamics and analyses."""
