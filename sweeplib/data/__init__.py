"""Published values and curves, and the reader of files of them."""
