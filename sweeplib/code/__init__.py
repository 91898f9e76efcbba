"""Source code as data: what changes a number, what a plugin imports, where a user's modules are."""
