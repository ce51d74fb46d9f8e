"""The position of the current data, which notes whether a UDF uses its navigation part."""

from __future__ import annotations

from typing import Any

from udfdask.arrays.geometry.slices import Slice


class NotedSlice(Slice):
    """A slice that adds ``"slice"`` to `looks` when its navigation part is used.

    The numbers of rows depend on the ROI outside of the chunk. Many UDFs only use the signal part,
    such as those that cut a mask like the tile: their partial results are valid for any ROI.
    """

    __slots__ = ("_looks", "_whole")

    def __init__(self, whole: Slice, looks: set[str]) -> None:
        self._whole = whole
        self._looks = looks
        self.shape = whole.shape

    @property
    def _origin(self) -> Any:  # type: ignore[override]
        self._looks.add("slice")
        return self._whole._origin

    @property
    def rows(self) -> Any:  # type: ignore[override]
        """Navigation indices, if they are not contiguous."""
        self._looks.add("slice")
        return self._whole.rows

    @property
    def sig(self) -> Slice:
        """The signal part."""
        return self._whole.sig
