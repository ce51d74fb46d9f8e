"""Arithmetic on plain arrays, compiled by numba or in CuPy: no UDFs, no dask."""
