"""Ready-made UDFs."""

from udfdask.udfs.apply_masks import ApplyMasksUDF
from udfdask.udfs.auto import AutoUDF
from udfdask.udfs.correlation import CorrelationUDF
from udfdask.udfs.crystallinity import CrystallinityUDF
from udfdask.udfs.fem import FEMUDF
from udfdask.udfs.logsum import LogsumUDF
from udfdask.udfs.noop import NoOpUDF
from udfdask.udfs.pick import PickUDF
from udfdask.udfs.record import RecordUDF
from udfdask.udfs.stddev import StdDevUDF
from udfdask.udfs.sum import SumUDF
from udfdask.udfs.sumsig import SumSigUDF
from udfdask.udfs.virtual_detector import VirtualDetectorUDF

__all__ = [
    "FEMUDF",
    "ApplyMasksUDF",
    "AutoUDF",
    "CorrelationUDF",
    "CrystallinityUDF",
    "LogsumUDF",
    "NoOpUDF",
    "PickUDF",
    "RecordUDF",
    "StdDevUDF",
    "SumSigUDF",
    "SumUDF",
    "VirtualDetectorUDF",
]
