"""The recipe of a run: all that tasks need to know, as one frozen value that they share.

`udfdask.plan.make_recipe` makes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend, DenseBackend
from udfdask.backends.table import choose_backends
from udfdask.base.types import is_lazy
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correction_set import PLANES, with_planes
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.shapes import Shape
from udfdask.geometry.tiling import TilingScheme, without_caches
from udfdask.plan.merge_tree import MergeTree
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import Place, lazy_places, member_at, with_members
from udfdask.udf.promises import Promises

if TYPE_CHECKING:
    from udfdask.geometry.halo import Halo

Slot = tuple[int, str, Place]
"""One dask collection among the parameters: number of the UDF, or CORRECTIONS, name of the
parameter, and the place in it if it is a list, tuple or dictionary."""

CORRECTIONS = -1
"""Number that stands for the corrections in a `Slot`."""

DESCAN = -2
"""Number that stands for the shifts of frames in `Recipe.aux_slots`."""


@dataclass(frozen=True, kw_only=True)
class UDFRecipe:
    """One UDF of a run: what it declared, and what the plan chose for it."""

    cls: type[UDF]
    """Class of the UDF."""
    kwargs: dict[str, Any]
    """Its parameters; each task creates `cls(**kwargs)`."""
    lazy_params: tuple[str, ...]
    """Parameters that are dask collections and reach tasks as computed values."""
    aux: dict[str, AuxData]
    """Parameters that are aux data, without their values."""
    method: UDFMethod
    """The `process_*` method that runs."""
    input_dtype: np.dtype[Any]
    """Dtype in which it is given the data."""
    buffers: dict[str, BufferSpec]
    """Declared buffers by name."""
    merge: MergeTree
    """How the partial results of its chunks are merged."""
    progressive_merge: MergeTree
    """The same in a progressive run: another tree if the UDF has both `merge` and `merge_all`."""
    has_get_results: bool
    """Whether the UDF has its own `get_results`."""
    elementwise: bool
    """Whether `get_results` runs chunk by chunk."""
    axes: dict[str, tuple[Axis, ...]]
    """The extra dimensions of each result."""
    calibration: Calibration | None = None
    """Axes of the data and unit of the values; None if the UDF does not use them in its tasks."""
    backends: tuple[Backend, ...] = (NUMPY,)
    """The array backends that it may be given in this run, preferred first."""
    contiguous_nav: bool
    """Whether it asks for tiles of contiguous rows."""
    promises: Promises
    """The promises that count in this run."""
    backend: Backend = NUMPY
    """The one that it is given, if the chunks have the type of the dask array's meta."""
    halo: Halo | None = None
    """The frames around each position that it sees; None if it sees each frame alone."""

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.cls.__name__

    @cached_property
    def allocated(self) -> dict[str, BufferSpec]:
        """Buffers that exist while processing and merging."""
        return {k: s for k, s in self.buffers.items() if s.use != "result_only"}

    @property
    def knows_pixels(self) -> bool:
        """Whether it can say which pixels of a frame it uses, or what its center is."""
        ours, base = self.cls, UDF
        return (
            ours._coverages is not base._coverages or ours._center_names is not base._center_names
        )

    @property
    def needs_cuda(self) -> bool:
        """Whether it runs on a CUDA device only."""
        return all(backend.device == "cuda" for backend in self.backends)

    @property
    def nav_aux(self) -> tuple[str, ...]:
        """Names of the aux data with a value for each frame; a task has the rows of its chunk."""
        return tuple(name for name, aux in self.aux.items() if aux.kind == "nav")

    @property
    def carries_aux(self) -> bool:
        """Whether partial results include the rows of the aux data, for merges or `get_results`."""
        # so that no task needs the aux data of another chunk
        return bool(self.nav_aux) and (self.merge.mode != "none" or self.has_get_results)

    @property
    def outputs(self) -> dict[str, BufferSpec]:
        """Buffers that are results."""
        return {k: s for k, s in self.buffers.items() if s.use != "private"}

    @property
    def has_nav(self) -> bool:
        """Whether a nav buffer exists while processing and merging."""
        return any(s.kind == "nav" for s in self.allocated.values())

    @property
    def has_reduced(self) -> bool:
        """Whether a sig or single buffer exists while processing and merging."""
        return any(s.kind != "nav" for s in self.allocated.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DescanRecipe:
    """How frames are shifted before UDFs see them; each task gets the shifts of its own frames."""

    shifts: AuxData
    """The shifts in pixels, extra shape (sig dims,), without their values."""
    subpixel: bool
    """Whether frames are shifted by parts of a pixel."""
    fill: Any
    """Value of the pixels that come from outside of the frame."""
    moves_entries: bool
    """Whether sparse frames stay sparse: their entries are moved. If not, they become dense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The data of a run, and what happens to them before UDFs see them."""

    grid: Grid
    """Navigation chunks, ROI, and the positions that have a frame."""
    shape: Shape
    """Shape of the data set."""
    dtype: np.dtype[Any]
    """Dtype of the data set."""
    sig_chunks: tuple[tuple[int, ...], ...]
    """Chunk sizes along each signal axis, in pixels."""
    corrections: CorrectionSet | None = None
    """Corrections of the data; excluded pixels as coordinates."""
    descan: DescanRecipe | None = None
    """Shifts of the corrected frames."""
    native: Backend = NUMPY
    """Array backend of the chunks, from the dask array's meta."""

    @property
    def n_blocks(self) -> int:
        """Number of signal chunks."""
        return math.prod(len(sizes) for sizes in self.sig_chunks)

    @property
    def moves_entries(self) -> bool:
        """Whether shifts move the entries of sparse frames, which stay sparse."""
        return self.descan is not None and self.descan.moves_entries

    @property
    def makes_dense(self) -> bool:
        """Whether sparse data become dense tiles first, because pixels change before a UDF."""
        return self.corrections is not None or (self.descan is not None and not self.moves_entries)

    def meta(self, calibration: Calibration, threads: int) -> UDFMeta:
        """Return what declaring methods of UDFs see."""
        return UDFMeta(
            grid=self.grid,
            dataset_shape=self.shape,
            dataset_dtype=self.dtype,
            threads=threads,
            corrections=self.corrections,
            calibration=calibration,
            interpolated=self.descan is not None and self.descan.subpixel,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Data):
    """The data of a run and all its UDFs."""

    tiling: TilingScheme
    """Shape of dense tiles."""
    sparse_tiling: TilingScheme
    """Shape of sparse tiles, for UDFs that take sparse data as they are."""
    by_sig_chunk: bool
    """Whether each signal chunk of a navigation block has its own task."""
    threads: int
    """Threads that BLAS, OpenMP and numba may use in a task."""
    limits_threads: bool
    """Whether tasks limit those libraries: not if all UDFs promise `starts_no_threads`."""
    udfs: tuple[UDFRecipe, ...]
    """The UDFs, in the order of the call."""
    summed: tuple[int, ...] = ()
    """Numbers of the UDFs that get the sums of each dense tile in place of the tile."""
    token: str = ""
    """Name of the run, under which a process caches shared task data; empty for no cache."""

    @property
    def contiguous_nav(self) -> bool:
        """Whether all tiles have contiguous rows, because one of the UDFs asks for it."""
        return any(udf.contiguous_nav for udf in self.udfs)

    def halos(self, numbers: Iterable[int]) -> tuple[Halo, ...]:
        """Return the halos of some UDFs, each once."""
        found = (self.udfs[k].halo for k in numbers)
        return tuple(dict.fromkeys(halo for halo in found if halo is not None))

    def keeps_chunks(self, number: int) -> bool:
        """Return whether a UDF with a halo processes all positions after margins have come.

        Chunks then wait for their neighbors in memory, in place of results larger than frames.
        """
        udf = self.udfs[number]
        rows = [spec for spec in udf.allocated.values() if spec.kind == "nav"]
        row = sum(math.prod(spec.extra_shape) * spec.dtype.itemsize for spec in rows)
        return udf.halo is not None and row > self.shape.sig.size * self.dtype.itemsize

    def backends_over(self, native: Backend) -> tuple[Backend, ...]:
        """Return the array backend of each UDF over a chunk, which may be of another type."""
        if native == self.native:
            return tuple(u.backend for u in self.udfs)
        return backends_for(self.udfs, native, corrected=self.makes_dense)

    @property
    def result_backend(self) -> DenseBackend:
        """The array backend of the results: on a device if the chunks are there, else NumPy."""
        return self.native.dense if self.native.on_device else NUMPY

    def xp_backend(self, number: int) -> DenseBackend:
        """Return the array backend whose module is `xp` of a UDF in `merge` and `get_results`."""
        return self.result_backend if self.udfs[number].backend.on_device else NUMPY

    def merge_backend(self, number: int) -> DenseBackend:
        """Return the array backend of the partial results that a UDF merges."""
        return NUMPY if self.udfs[number].cls._merges_on_host else self.xp_backend(number)

    @property
    def aux_slots(self) -> tuple[tuple[int, str], ...]:
        """All aux data of kind nav: number of the UDF and name of the parameter; DESCAN is last."""
        of_udfs = tuple((k, name) for k, u in enumerate(self.udfs) for name in u.nav_aux)
        return of_udfs if self.descan is None else (*of_udfs, (DESCAN, "shifts"))

    @property
    def lazy_slots(self) -> tuple[Slot, ...]:
        """The dask collections that are computed before the first chunk."""
        own = [
            (k, name, place)
            for k, u in enumerate(self.udfs)
            for name in u.lazy_params
            for place in [*lazy_places(u.kwargs[name])] or [()]
        ]
        planes = [name for name in PLANES if is_lazy(getattr(self.corrections, name, None))]
        return (*own, *((CORRECTIONS, name, ()) for name in planes))

    def lazy_value(self, number: int, name: str, place: Place) -> Any:
        """Return the dask collection of one of `lazy_slots`."""
        if number == CORRECTIONS:
            return getattr(self.corrections, name)
        value = member_at(self.udfs[number].kwargs[name], place)
        return value.data if isinstance(value, AuxData) else value

    @property
    def now(self) -> Recipe:
        """The recipe itself; `LiveRecipe.now`, which tasks may get instead, changes in time."""
        return self

    @property
    def nbytes(self) -> int:
        """Approximate serialized size in bytes: arrays among the parameters, chunks and ROI."""
        planes = [getattr(self.corrections, name, None) for name in (*PLANES, "excluded_pixels")]
        return self.grid.packed_size + _nbytes(planes) + sum(_nbytes(u.kwargs) for u in self.udfs)

    def __sizeof__(self) -> int:
        """Return the size with the arrays: schedulers count it as memory of a worker."""
        roi = self.grid.roi
        return object.__sizeof__(self) + self.nbytes + (0 if roi is None else int(roi.nbytes))

    def with_params(self, values: Mapping[Slot, Any]) -> Recipe:
        """Return the recipe with computed values in place of lazy parameters.

        Keys are those of `lazy_slots`.
        """
        udfs = list(self.udfs)
        planes = {name: value for (k, name, _), value in values.items() if k == CORRECTIONS}
        corrections = self.corrections
        if corrections is not None and planes:
            corrections = with_planes(corrections, planes, self.shape.sig, self.dtype)
        for (number, name, place), value in values.items():
            if number != CORRECTIONS:
                u = udfs[number]
                is_aux = value is not None and name in u.aux
                given = u.aux[name].with_data(value) if is_aux else value
                changed = with_members(u.kwargs[name], {place: given})
                udfs[number] = replace(u, kwargs={**u.kwargs, name: changed})
        return replace(self, udfs=tuple(udfs), corrections=corrections)


def backends_for(
    udfs: Sequence[UDFRecipe], native: Backend, *, corrected: bool
) -> tuple[Backend, ...]:
    """Return the array backend that each UDF is given over a chunk of backend `native`."""
    # Names and dtypes alone decide, so that a worker chooses as the plan would. A backend without
    # the dtype is left only if there is no other; `check_dtypes` then raises.
    offers = [
        tuple(one for one in u.backends if one.holds(u.input_dtype)) or u.backends for u in udfs
    ]
    return choose_backends(native, offers, corrected=corrected)


def _nbytes(value: Any, around: tuple[int, ...] = ()) -> int:
    """Return the bytes of arrays and strings in a parameter; `around`: ids of its containers."""
    # a collection is computed on a worker; a list may contain itself
    if hasattr(value, "__dask_graph__") or id(value) in around:
        return 0
    inside = (*around, id(value))
    if isinstance(value, Mapping):
        return sum(_nbytes(v, inside) for v in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sum(_nbytes(v, inside) for v in value)
    if isinstance(value, (str, bytes)):
        return len(value)
    size = getattr(value, "nbytes", 0)  # a class such as np.float32 has a descriptor here
    return int(size) if isinstance(size, (int, np.integer)) else 0
