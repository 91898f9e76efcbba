"""The run store: a row a case, written by one process a block; `segment` has the format of its files."""
