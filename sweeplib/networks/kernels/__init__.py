"""The compiled steps of the dynamics."""
