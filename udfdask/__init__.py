"""User-defined functions over dask arrays of detector frames."""

from typing import TYPE_CHECKING

from udfdask.base.lazy_names import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from udfdask.base.types import (
        UDFFrameMixin,
        UDFMergeAllMixin,
        UDFPartitionMixin,
        UDFPostprocessMixin,
        UDFPreprocessMixin,
        UDFTileMixin,
    )
    from udfdask.errors import (
        ArgumentTypeError,
        ArgumentValueError,
        InvalidMaskError,
        SumOverflowError,
        UDFError,
        UDFRunCancelled,
        UDFWarning,
        UndeclaredBufferError,
    )
    from udfdask.geometry.axes import Axis
    from udfdask.geometry.shapes import Shape
    from udfdask.geometry.slices import Slice
    from udfdask.results.result import Result
    from udfdask.results.saving import save_results
    from udfdask.run.map_frames import map_frames
    from udfdask.run.progressive import run_udf_iter
    from udfdask.run.resources import get_resources
    from udfdask.run.run_udf import compute, explain, persist, run_udf
    from udfdask.scheduling.on_workers import on_workers
    from udfdask.scheduling.records.folder import cache
    from udfdask.udf import UDF, UDFMethod
    from udfdask.udf.aux_data import AuxData
    from udfdask.udf.buffers import BufferSpec, PartialViews, Views
    from udfdask.udf.promises import Promises

__all__ = [
    "UDF",
    "ArgumentTypeError",
    "ArgumentValueError",
    "AuxData",
    "Axis",
    "BufferSpec",
    "InvalidMaskError",
    "PartialViews",
    "Promises",
    "Result",
    "Shape",
    "Slice",
    "SumOverflowError",
    "UDFError",
    "UDFFrameMixin",
    "UDFMergeAllMixin",
    "UDFMethod",
    "UDFPartitionMixin",
    "UDFPostprocessMixin",
    "UDFPreprocessMixin",
    "UDFRunCancelled",
    "UDFTileMixin",
    "UDFWarning",
    "UndeclaredBufferError",
    "Views",
    "__version__",
    "cache",
    "compute",
    "explain",
    "get_resources",
    "map_frames",
    "on_workers",
    "persist",
    "run_udf",
    "run_udf_iter",
    "save_results",
]


if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "errors": (
                "ArgumentTypeError ArgumentValueError InvalidMaskError SumOverflowError UDFError "
                "UDFRunCancelled UDFWarning UndeclaredBufferError"
            ),
            "geometry.axes": "Axis",
            "geometry.shapes": "Shape",
            "geometry.slices": "Slice",
            "scheduling.records.folder": "cache",
            "results.result": "Result",
            "run.map_frames": "map_frames",
            "run.progressive": "run_udf_iter",
            "run.resources": "get_resources",
            "run.run_udf": "compute explain persist run_udf",
            "results.saving": "save_results",
            "scheduling.on_workers": "on_workers",
            "base.types": (
                "UDFFrameMixin UDFMergeAllMixin UDFPartitionMixin UDFPostprocessMixin "
                "UDFPreprocessMixin UDFTileMixin"
            ),
            "udf": "UDF UDFMethod",
            "udf.aux_data": "AuxData",
            "udf.buffers": "BufferSpec PartialViews Views",
            "udf.promises": "Promises",
        },
        # docs and messages write udfdask.io.open_file: it works after `import udfdask`
        parts="analyses corrections errors io libertem masks plotting testing udfs",
    )
