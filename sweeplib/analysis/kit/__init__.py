"""What analyses are made of: samples, fits, intervals, labels."""
