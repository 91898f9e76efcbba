"""Tables, registries, limits and other things that every room uses."""
