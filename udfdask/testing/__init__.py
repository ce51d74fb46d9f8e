"""Test UDFs: check one, compare results, run a plain reference, forbid computing.

`udfdask.testing.strategies` needs hypothesis, so it is not imported here.
"""

from udfdask.testing.assertions import UDFCheckError, assert_eq, raise_if_dask_computes
from udfdask.testing.laws.check_udf import CheckReport, check_udf
from udfdask.testing.reference import run_reference

__all__ = [
    "CheckReport",
    "UDFCheckError",
    "assert_eq",
    "check_udf",
    "raise_if_dask_computes",
    "run_reference",
]
