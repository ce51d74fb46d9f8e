"""The only place where dask tasks are built."""
