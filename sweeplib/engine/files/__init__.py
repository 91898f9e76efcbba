"""How files are opened, read and trusted."""
