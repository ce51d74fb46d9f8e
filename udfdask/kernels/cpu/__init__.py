"""Arithmetic on plain arrays, compiled by numba.

Modules are imported inside the functions that call them: numba takes a while to load.
"""
