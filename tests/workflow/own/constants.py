"""A module that the plugin beside it imports."""

SCALE = 2.0
