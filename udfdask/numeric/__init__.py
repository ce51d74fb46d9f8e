"""Arithmetic on plain arrays; the one room in which numba is imported."""
