"""Ready-made UDFs."""

from udfdask.udfs.auto import AutoUDF
from udfdask.udfs.com import CoMUDF
from udfdask.udfs.com_corrections import (
    GuessResult,
    apply_correction,
    guess_corrections,
    to_beam_shift,
)
from udfdask.udfs.noop import NoOpUDF
from udfdask.udfs.pick import PickUDF
from udfdask.udfs.sum import SumUDF
from udfdask.udfs.sumsig import SumSigUDF

__all__ = [
    "AutoUDF",
    "CoMUDF",
    "GuessResult",
    "NoOpUDF",
    "PickUDF",
    "SumSigUDF",
    "SumUDF",
    "apply_correction",
    "guess_corrections",
    "to_beam_shift",
]
