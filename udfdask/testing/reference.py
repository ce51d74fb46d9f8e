"""The plain oracle: a UDF over a whole NumPy array at once; no chunks, no tiles, no dask."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
from dask.base import compute

from udfdask.arrays.backends.choose import choose_backends
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.backends.read_only import locked
from udfdask.arrays.geometry.chunk_grid import Grid
from udfdask.arrays.geometry.roi import normalize_roi
from udfdask.arrays.geometry.shapes import Shape
from udfdask.arrays.geometry.slices import Slice
from udfdask.arrays.geometry.tiling import TilingScheme
from udfdask.chunk.sparse_tiles import frames_of
from udfdask.corrections import CorrectionSet
from udfdask.errors import MissingMergeError
from udfdask.plan.declarations import known_backends
from udfdask.testing.checked_buffers import check_cast, checked
from udfdask.types import AnyArray
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData
from udfdask.udf.base import MaskedResult, overrides
from udfdask.udf.buffers import BufferSpec, PartialViews, Results, Views
from udfdask.udf.meta import Cursor, UDFMeta
from udfdask.udf.nested_collections import is_lazy, lazy_places
from udfdask.udf.params import Params, TaskData


@overload
def run_reference(
    array: Any,
    udf: UDF,
    *,
    sig_dims: int = ...,
    roi: Any = ...,
    corrections: CorrectionSet | None = ...,
) -> dict[str, AnyArray]: ...
@overload
def run_reference(
    array: Any,
    udf: Sequence[UDF],
    *,
    sig_dims: int = ...,
    roi: Any = ...,
    corrections: CorrectionSet | None = ...,
) -> tuple[dict[str, AnyArray], ...]: ...
def run_reference(
    array: Any,
    udf: UDF | Sequence[UDF],
    *,
    sig_dims: int = 2,
    roi: Any = None,
    corrections: CorrectionSet | None = None,
) -> dict[str, AnyArray] | tuple[dict[str, AnyArray], ...]:
    """Run UDFs over a NumPy array in the plainest way: what `run_udf` must agree with.

    The whole array is one partition: a loop over frames, or one tile, or one partition. An own
    `merge` or a `merge_all` is called once, on that one partial result.

    Parameters
    ----------
    array : array, shape (*nav, *sig)
        The data, NumPy or dask; dask arrays, also among parameters, are computed first.
    udf : UDF, or list or tuple of UDF
        What to run, each by itself.
    sig_dims : int
        Number of signal axes.
    roi : array-like, optional
        Which scan positions are processed, as in `run_udf`.
    corrections : CorrectionSet, optional
        What UDFs see corrected data of, applied pixel by pixel.

    Returns
    -------
    dict or tuple of dict
        Results by name in data set shape, filled outside the ROI; a dictionary for each UDF of a
        list.

    Raises
    ------
    MissingMergeError
        If a UDF has sig or single buffers and neither `merge` nor `merge_all`.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.testing import run_reference
    >>> from udfdask.udfs import SumSigUDF
    >>> run_reference(np.ones((2, 3, 4, 4)), SumSigUDF(), roi=(0, 1))["intensity"]
    array([[nan, 16., nan],
           [nan, nan, nan]])
    """
    data = np.asarray(compute(array, scheduler="sync")[0])
    if isinstance(udf, UDF):
        return _Reference(with_computed_params(udf), data, sig_dims, roi, corrections).run()
    return tuple(
        _Reference(with_computed_params(u), data, sig_dims, roi, corrections).run() for u in udf
    )


def with_computed_params(udf: UDF) -> UDF:
    """Return a UDF whose lazy parameters are computed; itself if it has none."""
    given = udf._kwargs
    aux = {k: v for k, v in given.items() if isinstance(v, AuxData) and v.is_lazy}
    lazy = {k: v for k, v in given.items() if is_lazy(v) or any(lazy_places(v))}
    if not lazy and not aux:
        return udf
    values, rows = compute(lazy, {k: v.data for k, v in aux.items()}, scheduler="sync")
    computed = {k: v.with_data(rows[k]) for k, v in aux.items()}
    return type(udf)(**{**given, **values, **computed})


def run_checked(udf: UDF, data: AnyArray, sig_dims: int) -> None:
    """Run a UDF whose lazy parameters are computed; raise if a buffer loses what it is given.

    Raises
    ------
    UDFCheckError
        If a value does not survive in the dtype of its buffer.
    """
    _Reference(udf, data, sig_dims, None, None, checks_buffers=True).run()


class _Reference:
    """One UDF over one array."""

    def __init__(
        self,
        udf: UDF,
        data: AnyArray,
        sig_dims: int,
        roi: Any,
        corrections: CorrectionSet | None,
        checks_buffers: bool = False,
    ) -> None:
        self.checks_buffers = checks_buffers
        given = [getattr(corrections, n, None) for n in ("dark", "gain", "excluded_pixels")]
        self.corrections = None if all(g is None for g in given) else corrections
        self.template = udf
        self.shape = Shape(data.shape, sig_dims=sig_dims)
        self.dtype = data.dtype
        nav = tuple(self.shape.nav)
        self.grid = Grid.of([(n,) for n in nav], normalize_roi(roi, nav))
        rows = data.reshape((math.prod(nav), *self.shape.sig))
        roi = self.grid.roi
        self.chosen = np.ones(len(rows), dtype=bool) if roi is None else roi.reshape(-1)
        self.rows = rows[self.chosen]
        self.aux = {
            name: (aux, self._whole_aux(aux))
            for name, aux in udf._kwargs.items()
            if isinstance(aux, AuxData)
        }
        sig = tuple(self.shape.sig)
        self.tiling = TilingScheme(
            sig_chunks=tuple((n,) for n in sig),
            sig_shape=sig,
            depth=max(1, len(self.rows)),
            gathered_depth=max(1, len(self.rows)),
            frame_depth=max(1, len(self.rows)),
        )

    def _whole_aux(self, aux: AuxData) -> AnyArray:
        """Return all values of aux data, those of the frames flattened."""
        values = np.asarray(aux.data).reshape(aux.full_shape(self.shape))
        flat = (self.grid.size, *aux.extra_shape)
        return values.reshape(flat) if aux.kind == "nav" else values

    def run(self) -> dict[str, AnyArray]:
        """Return the results."""
        worker = self._make()
        if self.grid.n_chunks:
            self._process(worker)
        merged = self._merge(worker)
        return self._results(merged)

    def _make(self) -> UDF:
        """Return a fresh instance with zeroed buffers."""
        udf = type(self.template)(**self.template._kwargs)
        cursor = Cursor(0, self.grid.n_chunks, len(self.rows))
        meta = UDFMeta(
            grid=self.grid,
            dataset_shape=self.shape,
            dataset_dtype=self.dtype,
            tiling=self.tiling,
            threads=1,
            cursor=cursor,
            corrections=self.corrections,
        )
        udf.meta = meta
        preferred = np.dtype(udf.get_preferred_input_dtype())
        least = np.dtype(bool if self.corrections is None else np.float32)
        dtype = np.result_type(self.dtype, preferred, least).newbyteorder("=")
        udf.meta = meta.with_input_dtype(dtype)
        offer = known_backends(udf.get_backends(), f"{type(udf).__name__}.get_backends()")
        (udf.meta._backend,) = choose_backends(NUMPY, [offer], corrected=False)
        whole = {name: locked(values) for name, (_, values) in self.aux.items()}
        udf.params = Params({**udf.params.__dict__, **whole})
        specs = dict(udf.get_result_buffers())
        udf.__dict__["_specs"] = specs
        arrays = {
            k: np.zeros(s.shape(len(self.rows), self.shape.sig), s.dtype)
            for k, s in specs.items()
            if s.use != "result_only"
        }
        if self.checks_buffers:
            arrays = {name: checked(name, array) for name, array in arrays.items()}
        udf.results = Results({**dict.fromkeys(specs), **arrays}, specs, arrays)
        self._move(udf, 0, len(self.rows))
        return udf

    def _process(self, udf: UDF) -> None:
        """Process every frame."""
        udf.task_data = TaskData(udf.get_shared_task_data())
        udf.task_data = TaskData({**udf.task_data.__dict__, **udf.get_task_data()})
        udf.preprocess()
        data: Any = self._corrected(np.array(self.rows, dtype=udf.meta.input_dtype))
        if udf.meta._backend.is_sparse:
            data = to_backend(data, udf.meta._backend, data.shape)
        whole = dict(udf.results._udfdask_arrays)
        method = udf.get_method()
        if method is UDFMethod.FRAME:
            self._process_frames(udf, data, whole)
        elif method is UDFMethod.TILE:
            udf.process_tile(data)
        else:
            udf.process_partition(data)
        udf.postprocess()
        udf.cleanup()

    def _corrected(self, data: AnyArray) -> AnyArray:
        """Return corrected frames, in the dtype they have."""
        if self.corrections is None:
            return data
        dtype, sig = data.dtype, tuple(self.shape.sig)
        for plane, change in (
            (self.corrections.dark, np.subtract),
            (self.corrections.gain, np.multiply),
        ):
            if plane is not None:
                (known,) = compute(plane, scheduler="sync")
                data = change(data, known.astype(dtype))
        bad = np.zeros(sig, dtype=bool)
        excluded = self.corrections.excluded_pixels
        if excluded is not None:
            is_mask = excluded.dtype == bool
            bad[excluded if is_mask else tuple(excluded.reshape((len(sig), -1)))] = True
        patched = data.copy()
        for pixel in np.argwhere(bad):
            around = tuple(slice(max(0, i - 1), i + 2) for i in pixel)
            good = data[(slice(None), *around)][:, ~bad[around]]
            if good.shape[1]:
                patched[(slice(None), *pixel)] = good.mean(axis=1)
        return patched

    def _process_frames(self, udf: UDF, data: Any, whole: dict[str, AnyArray]) -> None:
        """Process one frame after another."""
        specs = _specs(udf)
        for row, frame in enumerate(frames_of(data, udf.meta._backend, writable=True)):
            self._move(udf, row, row + 1, alone=True)
            views = dict(whole)
            for name, array in whole.items():
                if specs[name].kind == "nav":
                    views[name] = array[row] if specs[name].extra_shape else array[row : row + 1]
            udf.results = Results({**dict.fromkeys(specs), **views}, specs, whole)
            udf.process_frame(frame)
        self._move(udf, 0, len(self.rows))
        udf.results = Results({**dict.fromkeys(specs), **whole}, specs, whole)

    def _move(self, udf: UDF, start: int, stop: int, alone: bool = False) -> None:
        """Go on to some rows: what a UDF can ask about the piece at hand follows.

        A frame `alone` has no axis of its rows.
        """
        cursor = udf.meta.cursor
        assert cursor is not None
        cursor.start, cursor.stop = start, stop
        views = udf.params.__dict__
        for name, (aux, values) in self.aux.items():
            if aux.kind == "nav":
                rows = values[self.chosen][start:stop]
                views[name] = locked(rows[0] if alone and aux.extra_shape else rows)

    def _merge(self, done: UDF) -> UDF:
        """Return a UDF that holds the merged buffers."""
        specs, arrays = _specs(done), done.results._udfdask_arrays
        fresh = self._make()
        target = fresh.results._udfdask_arrays
        kinds = {specs[name].kind for name in arrays}
        own = overrides(done, "merge")
        if not hasattr(done, "merge_all") and not own:
            if kinds - {"nav"}:
                raise MissingMergeError(
                    f"{type(done).__name__} has sig or single buffers and neither merge nor "
                    "merge_all"
                )
            for name, array in arrays.items():
                target[name][...] = array
            return fresh
        cursor = fresh.meta.cursor
        assert cursor is not None
        if not self.grid.n_chunks:
            fresh.preprocess()
        elif hasattr(fresh, "merge_all"):
            cursor.merged = (0, self.grid.n_chunks)
            rows = Shape((len(self.rows), *self.shape.sig), sig_dims=self.shape.sig_dims)
            where = Slice((0,) * len(rows), rows)
            for name, value in fresh.merge_all({where: PartialViews(dict(arrays))}).items():
                target[name][...] = np.asarray(value).reshape(target[name].shape)
        else:
            fresh.preprocess()
            cursor.merged = (0, 0)
            fresh.merge(Views(dict(target)), Views(dict(arrays)))
        return fresh

    def _results(self, udf: UDF) -> dict[str, AnyArray]:
        """Return what get_results makes of the merged buffers, in data set shape."""
        specs = _specs(udf)
        assert udf.meta.cursor is not None
        udf.meta.cursor.merged = (0, self.grid.n_chunks)
        found: Mapping[str, Any] = dict(udf.get_results().items())
        arrays = {}
        for name, spec in specs.items():
            if spec.use == "private":
                continue
            value = found.get(name)
            if name not in found or (value is None and spec.dtype.kind != "O"):
                value = udf.results._udfdask_arrays[name]
            if isinstance(value, MaskedResult):
                value = value.array
            elif isinstance(value, np.ma.MaskedArray):
                value = value.data
            array = _as_array(value, spec)
            if self.checks_buffers:
                check_cast(name, value, array)
            arrays[name] = self._in_place(spec, array)
        return arrays

    def _in_place(self, spec: BufferSpec, value: AnyArray) -> AnyArray:
        """Return a result in data set shape, filled outside the ROI."""
        if spec.kind != "nav":
            shape = tuple(self.shape.sig) if spec.kind == "sig" else ()
            return value.reshape((*shape, *spec.extra_shape))
        full = np.full((self.grid.size, *spec.extra_shape), spec.fill, dtype=spec.dtype)
        chosen = np.ones(self.grid.size, bool) if self.grid.roi is None else self.grid.roi.ravel()
        if value.size == len(self.rows) * math.prod(spec.extra_shape):
            full[chosen] = value.reshape((len(self.rows), *spec.extra_shape))
        else:
            full[chosen] = value.reshape(full.shape)[chosen]
        return full.reshape((*self.grid.shape, *spec.extra_shape))


def _as_array(value: Any, spec: BufferSpec) -> AnyArray:
    """Return a result as an array of the declared dtype; an object for a single buffer in a box."""
    if spec.dtype.kind == "O" and spec.kind == "single" and not spec.extra_shape:
        if isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
            return value
        box = np.empty((), dtype=object)
        box[()] = value
        return box
    return np.asarray(value).astype(spec.dtype)


def _specs(udf: UDF) -> dict[str, BufferSpec]:
    """Return what a UDF has declared."""
    specs: dict[str, BufferSpec] = udf.__dict__["_specs"]
    return specs
