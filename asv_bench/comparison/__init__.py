"""The same work by udfdask, plain dask expressions, LiberTEM, and a bare read of the file."""
