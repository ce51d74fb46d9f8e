"""Ready-made UDFs."""

from udfdask.udfs.auto import AutoUDF
from udfdask.udfs.crystallinity import CrystallinityUDF
from udfdask.udfs.fem import FEMUDF
from udfdask.udfs.noop import NoOpUDF
from udfdask.udfs.pick import PickUDF
from udfdask.udfs.record import RecordUDF
from udfdask.udfs.sum import SumUDF
from udfdask.udfs.sumsig import SumSigUDF

__all__ = [
    "FEMUDF",
    "AutoUDF",
    "CrystallinityUDF",
    "NoOpUDF",
    "PickUDF",
    "RecordUDF",
    "SumSigUDF",
    "SumUDF",
]
