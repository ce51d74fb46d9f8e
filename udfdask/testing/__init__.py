"""What helps somebody's test: a plain reference run, a fence around laziness.

`udfdask.testing.strategies` needs hypothesis and is imported by itself.
"""

from udfdask.testing.laziness import raise_if_dask_computes
from udfdask.testing.reference import run_reference

__all__ = ["raise_if_dask_computes", "run_reference"]
