"""Runs that yield intermediate results: one snapshot per merged chunk."""

from udfdask.run.progressive.iterator import UDFIterator
from udfdask.run.progressive.snapshot import Snapshot
from udfdask.run.progressive.start import run_udf_iter

__all__ = ["Snapshot", "UDFIterator", "run_udf_iter"]
