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
from udfdask.udfs.radial_fourier import RadialFourierUDF
from udfdask.udfs.radial_profile import RadialProfileUDF
from udfdask.udfs.sum import SumUDF
from udfdask.udfs.sumsig import SumSigUDF

__all__ = [
    "AutoUDF",
    "CoMUDF",
    "GuessResult",
    "NoOpUDF",
    "PickUDF",
    "RadialFourierUDF",
    "RadialProfileUDF",
    "SumSigUDF",
    "SumUDF",
    "apply_correction",
    "guess_corrections",
    "to_beam_shift",
]
