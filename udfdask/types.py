"""Define literal types, array types and protocols that the whole package uses."""

from __future__ import annotations

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


class _Hook(Protocol):
    """Base of the protocols below, which are listed before `UDF` as base classes of a UDF."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # without this method, Protocol.__init__ would not pass the arguments on to UDF
        super().__init__(*args, **kwargs)


@runtime_checkable
class UDFFrameMixin(_Hook, Protocol):
    """A UDF that processes one frame at a time."""

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
    """A UDF that processes the same part of several frames at a time."""

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
    """A UDF that processes all selected frames of a chunk at once."""

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
    """A UDF that initializes its buffers."""

    def preprocess(self) -> None:
        """Initialize the buffers of a chunk or of a merge."""
        ...


@runtime_checkable
class UDFPostprocessMixin(_Hook, Protocol):
    """A UDF that works on the buffers of a chunk once all its frames have been processed."""

    def postprocess(self) -> None:
        """Work on the buffers of a chunk."""
        ...


@runtime_checkable
class UDFMergeAllMixin(_Hook, Protocol):
    """A UDF that merges the results of several chunks in one call."""

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
