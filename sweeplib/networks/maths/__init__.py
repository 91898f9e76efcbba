"""The mathematics: activations, Gaussian expectations, overlaps, initial conditions."""
