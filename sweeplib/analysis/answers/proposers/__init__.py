"""The proposers, one a file."""
