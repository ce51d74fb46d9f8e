"""Arithmetic on arrays of a CUDA device: what `numeric` does on the host, in CuPy's functions.

Functions take arrays of one array module and leave them on their side.
"""
