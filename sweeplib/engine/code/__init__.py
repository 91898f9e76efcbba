"""Source code as data: the code that affects a number, the imports of plugins, the location of a user's modules."""
