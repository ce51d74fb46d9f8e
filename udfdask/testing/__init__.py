"""What helps somebody's test: check a UDF, compare results, a plain reference, a fence.

`udfdask.testing.strategies` needs hypothesis and is imported by itself.
"""

from udfdask.testing.equality import assert_eq
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.laws.check_udf import CheckReport, check_udf
from udfdask.testing.raise_if_computes import raise_if_dask_computes
from udfdask.testing.reference import run_reference

__all__ = [
    "CheckReport",
    "UDFCheckError",
    "assert_eq",
    "check_udf",
    "raise_if_dask_computes",
    "run_reference",
]
