"""The design of a sweep: `grid` has its points, of which `design` makes cases, with seeds and dynamics."""
