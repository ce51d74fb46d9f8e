"""Build dask tasks; no other folder does."""
