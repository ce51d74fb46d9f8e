"""Arithmetic on arrays of a CUDA device: the arithmetic of `kernels.cpu`, in functions of CuPy.

Functions take arrays of one array module and leave them on their side.
"""
