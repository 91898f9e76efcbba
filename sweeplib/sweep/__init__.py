"""A sweep: its grid, the plan, the cluster it runs on, and the run itself."""
