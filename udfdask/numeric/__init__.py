"""Arithmetic on plain arrays, compiled with numba: imported where it is first needed."""
