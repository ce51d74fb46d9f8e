"""Compiled arithmetic on plain arrays; the only room that imports numba.

Importing one of its modules takes as long as importing numba does, so UDFs import them inside
methods.
"""
