"""Ready-made UDFs."""

from udfdask.udfs.auto import AutoUDF
from udfdask.udfs.correlation import CorrelationUDF
from udfdask.udfs.noop import NoOpUDF
from udfdask.udfs.pick import PickUDF
from udfdask.udfs.sum import SumUDF
from udfdask.udfs.sumsig import SumSigUDF

__all__ = ["AutoUDF", "CorrelationUDF", "NoOpUDF", "PickUDF", "SumSigUDF", "SumUDF"]
