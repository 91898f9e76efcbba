"""What sweeplib's speed is measured by: `make bench`."""
