"""What scripts and UDFs that were written for LiberTEM import, under the names it has there."""

from udfdask.errors import UDFError
from udfdask.geometry.roi import count_nonzero
from udfdask.geometry.shapes import prod
from udfdask.libertem.shortcuts import run_analysis_crystall, run_fem, run_logsum, run_stddev
from udfdask.libertem_udfs import adapt

__all__ = [
    "UDFException",
    "adapt",
    "count_nonzero",
    "prod",
    "run_analysis_crystall",
    "run_fem",
    "run_logsum",
    "run_stddev",
]

UDFException = UDFError
"""LiberTEM's name of `UDFError`."""
