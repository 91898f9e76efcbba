"""The run store: a row a case, written by one process a block."""
