"""What the plugin beside it imports."""

SCALE = 2.0
