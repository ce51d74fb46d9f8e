"""Importing this module adds the accessor ``udf`` to HyperSpy's signals.

Examples
--------
>>> import hyperspy.api as hs, numpy as np
>>> import udfdask.hyperspy
>>> from udfdask.udfs import SumSigUDF
>>> s = hs.signals.Signal2D(np.ones((2, 3, 4, 5))).as_lazy()
>>> s.udf.run_udf(SumSigUDF())["intensity"]
<LazySignal, title: intensity, dimensions: (3, 2|)>
"""

try:
    import hyperspy.api  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f'udfdask.hyperspy needs HyperSpy ({error}): pip install "udfdask[hyperspy]"',
        name=error.name,
    ) from error

from udfdask.hyperspy.accessor import UDFAccessor
from udfdask.hyperspy.results import SignalResult

__all__ = ["SignalResult", "UDFAccessor"]
