"""The labelled dataset, made of the rows of a run store.

`finalise` makes it; `folder` writes and opens it (zarr v3: arrays, chunks, compressors), by the `stores` of zarr.
"""
