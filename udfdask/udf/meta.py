"""Describe the dataset, the run and the current data to a UDF (`self.meta`)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend
from udfdask.backends.device import device_number
from udfdask.base.types import AnyArray
from udfdask.corrections import CorrectionSet
from udfdask.errors import NotAvailableError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.chunk_grid import Grid, as_index, as_range
from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice
from udfdask.geometry.tiling import TilingScheme

Core = tuple[slice, ...]
"""Where some scan positions are in the window of frames around them, for each navigation axis."""


class NotedSlice(Slice):
    """A slice that notes when its navigation part is used, which depends on the full ROI."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Neighborhood:
    """The frames around the current positions of a UDF with a halo."""

    mask: AnyArray
    """Which frames exist, bool, of the shape of the navigation axes of the frames."""
    core: Core
    """Where the current positions are in them."""
    core_mask: AnyArray
    """Which of these positions are selected, bool."""


@dataclass(slots=True, eq=False)
class Cursor:
    """Current position in a run: some chunks, and the rows and pixels of them being processed."""

    chunks: tuple[int, int]
    stop: int  # rows from `start` to `stop` are processed
    start: int = 0
    alone: bool = False  # get_results sees the rows of one chunk only
    flat: bool = False  # rows in navigation order, as in get_results, not chunk by chunk
    part: Slice | None = None
    part_index: int = 0
    # rows of a chunk that need not be neighbors, in place of start and stop
    picked: AnyArray | None = None
    neighborhood: Neighborhood | None = None
    # merged rows: first and stop of consecutive chunks, or a mask of rows
    merged: tuple[int, int] | AnyArray | None = None
    _rows: range | AnyArray | None = None

    def rows(self, grid: Grid) -> range | AnyArray:
        """Return the numbers of the current rows: a range if they are consecutive, or an array."""
        if self._rows is None:
            self._rows = range(grid.n_frames) if self.flat else grid.rows_of(*self.chunks)
        if self.picked is not None:
            return as_range(np.asarray(self._rows)[self.picked])
        rows = self._rows[self.start : self.stop]
        return rows if isinstance(rows, range) else as_range(rows)

    def coordinates(self, grid: Grid) -> AnyArray:
        """Return the scan positions of the current rows, shape (rows, nav dims)."""
        every = grid.flat_coordinates if self.flat else grid.coordinates_of(*self.chunks)
        return every[self.start : self.stop] if self.picked is None else every[self.picked]


class UDFMeta:
    """Describe the dataset, the run, and the data being processed, as `self.meta`.

    Attributes of the current data (`slice`, `coordinates`, `partition_shape`, ...) exist while a
    chunk is processed or merged. In declarations they raise `NotAvailableError`.

    Examples
    --------
    >>> import udfdask as ud
    >>> class WhereUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         n = len(self.meta.dataset_shape.nav)
    ...         return {"row": self.buffer(kind="nav", dtype="int64", extra_shape=(n,))}
    ...     def process_frame(self, frame):
    ...         self.results.row[:] = self.meta.coordinates[0]  # y, x of this frame
    """

    def __init__(
        self,
        *,
        grid: Grid,
        dataset_shape: Shape,
        dataset_dtype: np.dtype[Any],
        input_dtype: np.dtype[Any] | None = None,
        tiling: TilingScheme | None = None,
        threads: int | None = None,
        cursor: Cursor | None = None,
        corrections: CorrectionSet | None = None,
        interpolated: bool = False,
        backend: Backend = NUMPY,
        calibration: Calibration | None = None,
    ) -> None:
        self._grid = grid
        self._tiling = tiling
        self._threads = threads
        self._input_dtype = input_dtype
        self._position = cursor
        self.dataset_shape = dataset_shape
        self.dataset_dtype = dataset_dtype
        self._backend = backend
        self.corrections = corrections
        self._calibration = calibration
        self._interpolated = interpolated  # frames are shifted by parts of a pixel
        # what the UDF used that depends on the ROI outside of its chunk
        self._looks: set[str] = set()

    def with_input_dtype(self, dtype: np.dtype[Any]) -> UDFMeta:
        """Return a copy with the dtype in which a UDF sees the data."""
        changed = copy.copy(self)
        changed._input_dtype = dtype
        return changed

    def __getstate__(self) -> dict[str, Any]:
        # a UDF copies it: what the UDF asks the copy is not noted
        self._looks.add("copy")
        return self.__dict__

    def _missing(self, name: str, when: str) -> NotAvailableError:
        return NotAvailableError(f"meta.{name} does not exist here: it is known {when}")

    def _cursor(self, name: str) -> Cursor:
        if self._position is None:
            when = "while a chunk is processed or merged, not in declarations and shared task data"
            raise self._missing(name, when)
        return self._position

    @property
    def cursor(self) -> Cursor | None:
        """The position of the current data, for the code that runs UDFs."""
        self._looks.add("cursor")  # the numbers of its chunks depend on the ROI
        return self._position

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """Dtype in which this UDF sees the data, in native byte order."""
        if self._input_dtype is None:
            raise self._missing("input_dtype", "after get_preferred_input_dtype has returned")
        return self._input_dtype

    @property
    def roi(self) -> AnyArray | None:
        """Boolean mask of the frames that are processed, shape `nav`; None for all."""
        self._looks.add("roi")
        return self._grid.roi

    @property
    def axes(self) -> tuple[Axis, ...]:
        """One axis for each dimension of the data, (*nav, *sig); pixel numbers by default."""
        return self.calibration.axes

    @property
    def unit(self) -> str | None:
        """Unit of the values, such as "counts"; None if it is not known."""
        return self.calibration.unit

    @property
    def voltage(self) -> float | None:
        """Acceleration voltage of the electrons, in volts; None if it is not known."""
        return self.calibration.voltage

    @property
    def calibration(self) -> Calibration:
        """`axes`, `unit` and `voltage` together."""
        if self._calibration is None:
            raise self._missing("axes", "in declarations; in tasks only with a get_result_units")
        return self._calibration

    @property
    def threads_per_worker(self) -> int:
        """Number of threads that numerics libraries may use in this task."""
        if self._threads is None:
            raise self._missing("threads_per_worker", "on a worker")
        return self._threads

    @property
    def array_backend(self) -> str:
        """Name of the array backend of this UDF's data."""
        return self._backend.name

    @property
    def device_class(self) -> str:
        """``'cuda'`` if the UDF works on a CUDA device, otherwise ``'cpu'``."""
        return self._backend.device

    @property
    def device_number(self) -> int | None:
        """Number of the CUDA device to use, as this process sees it; None on the CPU."""
        return device_number() if self.device_class == "cuda" else None

    @property
    def partition_shape(self) -> Shape:
        """Shape of the selected frames of this chunk, (frames, *sig)."""
        first, stop = self._cursor("partition_shape").chunks
        n = self._grid.n_rows(first, stop)
        return Shape((n, *self.dataset_shape.sig), sig_dims=self.dataset_shape.sig_dims)

    @property
    def slice(self) -> Slice:
        """Position of the current data: flattened navigation with the ROI applied, then signal."""
        cursor = self._cursor("slice")
        rows = cursor.rows(self._grid)
        sig = self.sig_slice
        shape = Shape((len(rows), *sig.shape), sig_dims=len(sig.shape))
        first, listed = (rows.start, None) if isinstance(rows, range) else (int(rows[0]), rows)
        return NotedSlice(Slice((first, *sig.origin), shape, listed), self._looks)

    @property
    def sig_slice(self) -> Slice:
        """Position of the current data in the signal."""
        sig = self.dataset_shape.sig
        return self._cursor("sig_slice").part or Slice((0,) * len(sig), sig)

    @property
    def tiling_scheme(self) -> TilingScheme:
        """Signal slices of the tiles of this run; full frames in frame and partition methods."""
        if self._tiling is None:
            raise self._missing("tiling_scheme", "after the tile shape has been chosen")
        self._looks.add("tiling_scheme")  # its depth depends on the largest chunk
        return self._tiling

    @property
    def tiling_scheme_idx(self) -> int:
        """Number of the current signal slice in `tiling_scheme`."""
        return self._cursor("tiling_scheme_idx").part_index

    @property
    def neighbor_mask(self) -> AnyArray:
        """Which frames of a neighborhood exist, bool, shape of the navigation axes of the frames.

        Frames beyond the scan do not exist, unless `boundary` stands for them; they are 0.
        """
        return self._neighborhood("neighbor_mask").mask

    @property
    def core(self) -> Core:
        """Where the positions to process are in a partition or window, for each axis."""
        return self._neighborhood("core").core

    @property
    def core_mask(self) -> AnyArray:
        """Which positions of `core` are selected by the region of interest, bool, of its shape."""
        return self._neighborhood("core_mask").core_mask

    def _neighborhood(self, name: str) -> Neighborhood:
        found = self._cursor(name).neighborhood
        if found is None:
            raise self._missing(name, "in the processing method of a UDF with a halo")
        return found

    @property
    def coordinates(self) -> AnyArray:
        """Scan positions of the current frames, int, shape (frames, nav dims)."""
        return self._cursor("coordinates").coordinates(self._grid)

    def get_valid_nav_mask(self, full_nav: bool = False) -> Any:
        """Return a mask of the scan positions that have been merged so far.

        Parameters
        ----------
        full_nav : bool
            True for a mask of all frames of the scan, False for a mask of the frames in the ROI
            (or of the frames of the chunk, if `get_results` runs chunk by chunk).

        Returns
        -------
        numpy.ndarray of bool, shape (frames,), or None
            In flattened navigation order. In `merge`, True for frames that are in `dest` already;
            in `get_results`, True for all merged frames; in `process_*` None.
        """
        cursor = self._cursor("get_valid_nav_mask")
        merged = cursor.merged
        if merged is None:
            return None
        if isinstance(merged, np.ndarray):
            valid = merged.copy()
        else:
            valid = np.zeros(self._grid.n_frames, dtype=bool)
            if merged[1] > merged[0]:
                valid[as_index(self._grid.rows_of(*merged))] = True
        if not full_nav:
            return valid[as_index(cursor.rows(self._grid))] if cursor.alone else valid
        full = np.zeros(self._grid.size, dtype=bool)
        full[... if self.roi is None else self.roi.reshape(-1)] = valid
        return full
