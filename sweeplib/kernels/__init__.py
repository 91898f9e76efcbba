"""The compiled steps of the dynamics: each reads as its equation."""
