"""Ready-made UDFs."""

from udfdask.udfs.auto import AutoUDF
from udfdask.udfs.logsum import LogsumUDF
from udfdask.udfs.noop import NoOpUDF
from udfdask.udfs.pick import PickUDF
from udfdask.udfs.stddev import StdDevUDF
from udfdask.udfs.sum import SumUDF
from udfdask.udfs.sumsig import SumSigUDF

__all__ = ["AutoUDF", "LogsumUDF", "NoOpUDF", "PickUDF", "StdDevUDF", "SumSigUDF", "SumUDF"]
