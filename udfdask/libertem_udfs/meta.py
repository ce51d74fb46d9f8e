"""Facts about the dataset and the run, in LiberTEM's types."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.udf.meta import UDFMeta


class LiberTEMMeta:
    """A view of `UDFMeta` whose shapes and slices are LiberTEM's.

    With `takes_partitions`, the UDF processes partitions: a chunk whose frames are not a range
    comes as several of them.
    """

    __slots__ = ("_meta", "_takes_partitions")

    def __init__(self, meta: UDFMeta, takes_partitions: bool) -> None:
        self._meta = meta
        self._takes_partitions = takes_partitions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._meta, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (LiberTEMMeta, (self._meta, self._takes_partitions))

    @property
    def dataset_shape(self) -> Any:
        """Shape of the dataset."""
        return _shape(self._meta.dataset_shape)

    @property
    def partition_shape(self) -> Any:
        """Shape of the partition, (frames, *sig)."""
        return _shape(
            self._meta.slice.shape if self._takes_partitions else self._meta.partition_shape
        )

    @property
    def slice(self) -> Any:
        """Position of the current data."""
        return _slice(self._meta.slice)

    @property
    def sig_slice(self) -> Any:
        """Position of the current data in the signal."""
        return _slice(self._meta.sig_slice)

    @property
    def corrections(self) -> Any:
        """Corrections of the data; an empty set if there are none."""
        from libertem.io.corrections import CorrectionSet

        ours = self._meta.corrections
        if ours is None:
            return CorrectionSet()
        excluded = None
        if ours.excluded_pixels is not None:
            excluded = np.zeros(tuple(self._meta.dataset_shape.sig), dtype=bool)
            excluded[tuple(ours.excluded_pixels)] = True
        # how pixels are patched is decided: the data have been corrected
        return CorrectionSet(ours.dark, ours.gain, excluded, allow_empty=True)

    @property
    def tiling_scheme(self) -> Any:
        """Signal slices of the tiles."""
        from libertem.io.dataset.base.tiling_scheme import TilingScheme

        ours = self._meta.tiling_scheme
        return TilingScheme(
            slices=[_slice(ours[k]) for k in range(len(ours))],
            tileshape=_shape(ours.shape),
            dataset_shape=_shape(ours.dataset_shape),
        )


def _shape(shape: Any) -> Any:
    from libertem.common.shape import Shape

    return Shape(tuple(shape), sig_dims=shape.sig_dims)


def _slice(found: Any) -> Any:
    from libertem.common.slice import Slice

    return Slice(origin=tuple(found.origin), shape=_shape(found.shape))
