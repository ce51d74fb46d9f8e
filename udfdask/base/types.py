"""Define types and protocols that the whole package uses, and tell which values are lazy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

Kind = Literal["nav", "sig", "single"]
"""The shape of a result buffer: one entry per frame, per pixel, or per run."""
Use = Literal["private", "result_only"]
"""A buffer that only exists during processing, or only in the results."""
Where = Literal["device"]
"""The memory of a buffer while a chunk is processed."""

AnyArray = np.ndarray[Any, np.dtype[Any]]


def is_lazy(value: Any) -> bool:
    """Return whether a value is a dask collection; an xarray object is one if its data are."""
    # look at the type, because a Delayed has any attribute
    kind = type(value)
    if not hasattr(kind, "__dask_graph__"):
        return False
    # to make the graph of an expression takes long
    is_expression = hasattr(kind, "expr") and hasattr(value, "expr")
    return is_expression or value.__dask_graph__() is not None


def is_expression_array(value: Any) -> bool:
    """Return whether a value is a `dask_array.Array`; the package is never imported for it."""
    package = sys.modules.get("dask_array")
    return package is not None and isinstance(value, package.Array)


class _Hook(Protocol):
    """Base of the protocols below, which are listed before `UDF` as base classes of a UDF."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # without this method, Protocol.__init__ would not pass the arguments on to UDF
        super().__init__(*args, **kwargs)


@runtime_checkable
class UDFFrameMixin(_Hook, Protocol):
    """A UDF that processes one frame at a time.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> class MaxUDF(ud.UDFFrameMixin, ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"max": self.buffer(kind="nav")}
    ...     def process_frame(self, frame):
    ...         self.results.max[:] = frame.max()
    >>> ud.run_udf(da.ones((2, 4, 4)), MaxUDF())["max"].compute()
    array([1., 1.], dtype=float32)
    """

    def process_frame(self, frame: Any) -> None:
        """Process a frame.

        Parameters
        ----------
        frame : numpy.ndarray, shape sig, dtype `meta.input_dtype`
            Read-only unless the UDF sets `writable_input`.
        """
        ...


@runtime_checkable
class UDFTileMixin(_Hook, Protocol):
    """A UDF that processes the same part of several frames at a time.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> class MaxUDF(ud.UDFTileMixin, ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"max": self.buffer(kind="nav")}
    ...     def preprocess(self):
    ...         self.results.max[:] = -np.inf
    ...     def process_tile(self, tile):
    ...         self.results.max[:] = np.maximum(self.results.max, tile.max(axis=(1, 2)))
    >>> ud.run_udf(da.ones((2, 4, 4)), MaxUDF())["max"].compute()
    array([1., 1.], dtype=float32)
    """

    def process_tile(self, tile: Any) -> None:
        """Process a tile.

        Parameters
        ----------
        tile : numpy.ndarray, shape (n, *part of sig), dtype `meta.input_dtype`
            The same part of n frames; read-only unless the UDF sets `writable_input`.
        """
        ...


@runtime_checkable
class UDFPartitionMixin(_Hook, Protocol):
    """A UDF that processes all selected frames of a chunk at once.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> class MaxUDF(ud.UDFPartitionMixin, ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"max": self.buffer(kind="nav")}
    ...     def process_partition(self, partition):
    ...         self.results.max[:] = partition.max(axis=(1, 2))
    >>> ud.run_udf(da.ones((2, 4, 4)), MaxUDF())["max"].compute()
    array([1., 1.], dtype=float32)
    """

    def process_partition(self, partition: Any) -> None:
        """Process a partition.

        Parameters
        ----------
        partition : numpy.ndarray, shape (n, *sig), dtype `meta.input_dtype`
            All n selected frames of the chunk; read-only unless the UDF sets `writable_input`.
        """
        ...


@runtime_checkable
class UDFPreprocessMixin(_Hook, Protocol):
    """A UDF that gives its buffers start values other than 0.

    Examples
    --------
    >>> import udfdask as ud
    >>> class MinUDF(ud.UDFPreprocessMixin, ud.UDF):
    ...     def preprocess(self):
    ...         self.results.min[:] = float("inf")
    >>> isinstance(MinUDF(), ud.UDFPreprocessMixin)
    True
    """

    def preprocess(self) -> None:
        """Initialize the buffers of a chunk or of a merge."""
        ...


@runtime_checkable
class UDFPostprocessMixin(_Hook, Protocol):
    """A UDF that works on the buffers of a chunk once all its frames have been processed.

    Examples
    --------
    >>> import udfdask as ud
    >>> class NormUDF(ud.UDFPostprocessMixin, ud.UDF):
    ...     def postprocess(self):
    ...         self.results.norm **= 0.5
    >>> isinstance(NormUDF(), ud.UDFPostprocessMixin)
    True
    """

    def postprocess(self) -> None:
        """Work on the buffers of a chunk."""
        ...


@runtime_checkable
class UDFMergeAllMixin(_Hook, Protocol):
    """A UDF that merges the results of several chunks in one call.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> class MaxUDF(ud.UDFMergeAllMixin, ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"max": self.buffer(kind="sig")}
    ...     def preprocess(self):
    ...         self.results.max[:] = -np.inf
    ...     def process_frame(self, frame):
    ...         self.results.max[:] = np.maximum(self.results.max, frame)
    ...     def merge_all(self, ordered_results):
    ...         return {"max": np.max([part.max for part in ordered_results.values()], axis=0)}
    >>> x = da.arange(12, chunks=4).reshape(6, 2)
    >>> ud.run_udf(x, MaxUDF(), sig_dims=1)["max"].compute()
    array([10., 11.], dtype=float32)
    """

    def merge_all(self, ordered_results: Mapping[Any, Any]) -> Mapping[str, Any]:
        """Return merged arrays from the partial results of several chunks.

        It is also called on its own results, unless the merge is in one step
        (``split_every = False``).

        Parameters
        ----------
        ordered_results : mapping of Slice to partial results
            Position of the rows, in the order of the chunks, and their buffers, which can be read
            as attributes or as items.

        Returns
        -------
        mapping of str to array
            Every buffer except `result_only` buffers, by name. Nav buffers contain the rows of all
            parts, in the given order.
        """
        ...
