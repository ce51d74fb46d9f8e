"""Arithmetic on NumPy arrays, compiled by numba on first use.

Import these modules inside functions: numba takes long to load, and `import udfdask` does not.
"""
