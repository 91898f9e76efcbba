"""The page of a running sweep in Dask's dashboard: what the driver tells the scheduler, and how the page shows it."""
