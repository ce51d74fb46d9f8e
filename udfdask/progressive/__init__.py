"""Runs that hand out results while they go on: one snapshot per merged chunk."""

from udfdask.progressive.iteration import UDFIterator
from udfdask.progressive.run import run_udf_iter
from udfdask.progressive.snapshot import Snapshot

__all__ = ["Snapshot", "UDFIterator", "run_udf_iter"]
