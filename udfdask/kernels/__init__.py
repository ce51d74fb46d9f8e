"""Arithmetic on plain arrays, compiled by numba or written in CuPy, without UDFs and dask."""
