"""User-defined functions over dask arrays of detector frames."""

from importlib import import_module
from typing import TYPE_CHECKING

from udfdask.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClusterError,
    DeviceError,
    FileFormatError,
    InvalidMaskError,
    MemoryLimitError,
    MissingMergeError,
    NotAvailableError,
    SumOverflowError,
    UDFError,
    UDFRunCancelled,
    UDFWarning,
    UndeclaredBufferError,
)
from udfdask.geometry.axes import Axis
from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice
from udfdask.records.setting import cache
from udfdask.results.explanation import Explanation
from udfdask.results.result import Result
from udfdask.run.map_frames import map_frames
from udfdask.run.resources import get_resources
from udfdask.run.run_udf import compute, explain, persist, run_udf
from udfdask.scheduling.progress import ProgressReporter, ProgressState
from udfdask.types import (
    UDFFrameMixin,
    UDFMergeAllMixin,
    UDFPartitionMixin,
    UDFPostprocessMixin,
    UDFPreprocessMixin,
    UDFTileMixin,
)
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData
from udfdask.udf.promises import Promises

__version__ = "0.1.0"

if TYPE_CHECKING:
    from udfdask.run.progressive import Snapshot, UDFIterator, run_udf_iter
    from udfdask.saving.save import save_results

__all__ = [
    "UDF",
    "ArgumentTypeError",
    "ArgumentValueError",
    "AuxData",
    "Axis",
    "ClusterError",
    "DeviceError",
    "Explanation",
    "FileFormatError",
    "InvalidMaskError",
    "MemoryLimitError",
    "MissingMergeError",
    "NotAvailableError",
    "ProgressReporter",
    "ProgressState",
    "Promises",
    "Result",
    "Shape",
    "Slice",
    "Snapshot",
    "SumOverflowError",
    "UDFError",
    "UDFFrameMixin",
    "UDFIterator",
    "UDFMergeAllMixin",
    "UDFMethod",
    "UDFPartitionMixin",
    "UDFPostprocessMixin",
    "UDFPreprocessMixin",
    "UDFRunCancelled",
    "UDFTileMixin",
    "UDFWarning",
    "UndeclaredBufferError",
    "__version__",
    "cache",
    "compute",
    "explain",
    "get_resources",
    "map_frames",
    "persist",
    "run_udf",
    "run_udf_iter",
    "save_results",
]


# imported on first use: a tenth of the package
_LATER = {
    "Snapshot": "run.progressive",
    "UDFIterator": "run.progressive",
    "run_udf_iter": "run.progressive",
    "save_results": "saving.save",
}

_PARTS = frozenset(
    {"corrections", "descan", "io", "libertem", "masks", "plotting", "testing", "udfs"}
)


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any name

    def __getattr__(name: str) -> object:
        # docs and messages write udfdask.io.open_file: it works after `import udfdask`
        if name in _PARTS:
            return import_module(f"udfdask.{name}")
        if name in _LATER:
            return getattr(import_module(f"udfdask.{_LATER[name]}"), name)
        raise AttributeError(f"module 'udfdask' has no attribute {name!r}")
