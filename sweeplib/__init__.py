"""sweeplib: distributed parameter sweeps of one-pass SGD in two-layer networks, and of its limits."""
