"""Run a UDF over a whole NumPy array at once: no chunks, no tiles, no merge tree, no dask.

This run is the oracle for all tests, so it shares no arithmetic with the engine. It shares only how
a UDF is asked and set up: the recipe of the plan (buffers, dtypes, method, backend) and `Instance`
(a fresh UDF with zeroed buffers and `meta`). Everything that makes numbers is written again here in
the plainest way: conversion to the input dtype, corrections, shifts, the loop over frames, merges,
`get_results`, and the place of each result in the dataset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import compute

from udfdask.backends.table import to_backend
from udfdask.base.types import AnyArray, is_lazy
from udfdask.chunk.dense_tiles import frames_of
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections import CorrectionSet
from udfdask.geometry.axes import Calibration
from udfdask.geometry.halo import Halo
from udfdask.geometry.roi import Region, normalize_roi
from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice
from udfdask.geometry.tiling import sparse_tiling
from udfdask.plan.arguments import plan_descan
from udfdask.testing.eager_run import make_recipe
from udfdask.testing.plain_frames import correct_frames, shift_frames
from udfdask.udf.libertem_udfs import as_own, udf_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from udfdask.corrections import Descan
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData, reshaped
from udfdask.udf.base import overrides
from udfdask.udf.buffers import BufferSpec, PartialViews, Views
from udfdask.udf.meta import Neighborhood
from udfdask.udf.params import TaskData, lazy_places
from udfdask.udf.processing import MaskedResult

PAD_MODES = {"mask": "constant", "nearest": "edge", "reflect": "symmetric", "periodic": "wrap"}
"""What NumPy calls the boundaries of neighborhoods."""


def run_reference(
    array: Any,
    udf: UDF | Sequence[UDF],
    *,
    sig_dims: int = 2,
    roi: Region | None = None,
    corrections: CorrectionSet | None = None,
    descan: Descan | ArrayLike | None = None,
    calibration: Calibration | None = None,
) -> Any:
    """Run UDFs over a NumPy array in the plainest way; `run_udf` must give the same results.

    The whole array is one partition, processed as one tile or in a loop over frames. The UDF's own
    `merge` or `merge_all` is called once, with the one partial result.

    Parameters
    ----------
    array : array, shape (*nav, *sig)
        The data, NumPy or dask. dask arrays, also as parameters of UDFs, are computed first.
    udf : UDF, or list or tuple of UDF
        The UDFs; each has a run of its own.
    sig_dims : int
        Number of signal axes.
    roi : array-like, optional
        The scan positions to process, as in `run_udf`.
    corrections : CorrectionSet, optional
        Corrections of the data, applied pixel by pixel before UDFs see the data.
    descan : Descan or array-like, optional
        Shifts that are removed from the frames after corrections, frame by frame.
    calibration : Calibration, optional
        Axes and voltage, if the UDFs need them.

    Returns
    -------
    dict or tuple of dict
        Results by name in the shape of the dataset, filled outside the ROI; for a list of UDFs, one
        dictionary for each.

    Raises
    ------
    MissingMergeError
        If a UDF has sig or single buffers and neither `merge` nor `merge_all`.
    UDFError
        If a UDF declares something invalid, as in `run_udf`.

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

    def run(one: Any) -> dict[str, AnyArray]:
        asked = with_computed_params(as_own(one))
        return _PlainLoop(asked, data, sig_dims, roi, corrections, descan, calibration).run()

    return run(udf) if udf_name(udf) else tuple(map(run, udf))


def with_computed_params(udf: UDF) -> UDF:
    """Return a UDF whose lazy parameters are computed; the same UDF if it has none."""
    params = udf._kwargs
    aux = {k: v for k, v in params.items() if isinstance(v, AuxData) and v.is_lazy}
    lazy = {k: v for k, v in params.items() if is_lazy(v) or any(lazy_places(v))}
    if not lazy and not aux:
        return udf
    values, rows = compute(lazy, {k: v.data for k, v in aux.items()}, scheduler="sync")
    computed = {k: v.with_data(rows[k]) for k, v in aux.items()}
    return type(udf)(**{**params, **values, **computed})


class _PlainLoop:
    """A run of one UDF over one array, which is a single partition and a single tile."""

    def __init__(
        self,
        udf: UDF,
        data: AnyArray,
        sig_dims: int,
        roi: Region | None = None,
        corrections: CorrectionSet | None = None,
        descan: Descan | ArrayLike | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        shape = Shape(data.shape, sig_dims=sig_dims)
        roi = normalize_roi(roi, tuple(shape.nav))
        corrected = corrections is not None
        self.descan, shifts, _ = plan_descan(descan, shape, data.dtype, roi, corrected=corrected)
        recipe = make_recipe(
            [udf],
            shape=shape,
            dtype=data.dtype,
            sig_dims=sig_dims,
            roi=roi,
            corrections=corrections,
            descan=self.descan,
            calibration=calibration,
        )
        one_tile = sparse_tiling(recipe.sig_chunks, itemsize=1, max_frames=recipe.grid.n_frames)
        self.recipe = replace(recipe, tiling=one_tile, sparse_tiling=one_tile)
        self.declared = recipe.udfs[0]
        self.corrections = corrections
        n = shape.nav.size
        self.selected = np.ones(n, dtype=bool) if roi is None else roi.reshape(n)
        self.n_frames = int(self.selected.sum())
        self.data = data.reshape((n, *shape.sig))
        if shifts is not None:
            self.shifts = compute(shifts, scheduler="sync")[0].reshape((n, sig_dims))
        self.aux = {
            name: reshaped(udf._kwargs[name].data, (n, *aux.extra_shape))
            for name, aux in self.declared.aux.items()
            if aux.kind == "nav"
        }

    def run(self) -> dict[str, AnyArray]:
        """Return the results by name."""
        processed = self._instance()
        if self.n_frames:
            self._process(processed)
        return self._results(self._merge(processed))

    def _instance(self) -> Instance:
        """Return a fresh UDF over all frames, with zeroed buffers."""
        n_chunks = self.recipe.grid.n_chunks
        aux = {name: values[self.selected] for name, values in self.aux.items()}
        return Instance(self.recipe, 0, 0, n_chunks, aux, self.declared.backend)

    def _process(self, instance: Instance) -> None:
        udf = instance.udf
        udf.task_data = TaskData(udf.get_shared_task_data())
        udf.task_data = TaskData({**udf.task_data.__dict__, **udf.get_task_data()})
        udf.preprocess()
        process = getattr(udf, f"process_{self.declared.method.value}")
        if self.declared.halo is not None:
            self._process_neighborhoods(instance, self.declared.halo, process)
        else:
            data = self._changed(self.selected)
            if instance.backend.is_sparse or not instance.backend.on_device:
                data = to_backend(data, instance.backend, data.shape)
            if self.declared.method is UDFMethod.FRAME:
                self._process_frames(instance, data, process)
            else:
                process(data)
        udf.postprocess()
        udf.cleanup()

    def _changed(self, selected: AnyArray) -> Any:
        """Return some frames as the UDF is given them: converted, corrected and shifted."""
        # a copy, because `writable_input` lets the UDF write into it
        frames: Any = np.array(self.data[selected], dtype=self.declared.input_dtype)
        if self.corrections is not None:
            frames = correct_frames(frames, self.corrections)
        if self.descan is not None:
            how = {"subpixel": self.descan.subpixel, "fill": self.descan.fill}
            frames = shift_frames(frames, self.shifts[selected], **how)
        return frames

    def _process_neighborhoods(
        self, instance: Instance, halo: Halo, process: Callable[[AnyArray], None]
    ) -> None:
        """Process each selected position with the frames around it, cut from the padded scan."""
        udf, cursor, nav = instance.udf, instance.cursor, tuple(self.recipe.shape.nav)
        mode: Any = PAD_MODES[halo.boundary]

        def padded(values: AnyArray) -> AnyArray:
            width = (*halo.sides, *((0, 0) for _ in values.shape[1:]))
            return np.pad(values.reshape((*nav, *values.shape[1:])), width, mode=mode)

        exists = np.ones_like(self.selected)
        frames = self._changed(exists)
        if halo.in_roi:
            exists = self.selected
            frames[~exists] = 0
        frames, exists = padded(frames), padded(exists)
        aux = {name: padded(values) for name, values in self.aux.items()}
        core = tuple(slice(before, before + 1) for before, _ in halo.sides)
        one = np.ones((1,) * len(nav), dtype=bool)
        by_window = self.declared.method is UDFMethod.NEIGHBORHOOD
        for row, position in enumerate(np.argwhere(self.selected.reshape(nav))):
            window = tuple(slice(p, p + n) for p, n in zip(position, halo.window, strict=True))
            cursor.start, cursor.stop = row, row + 1
            cursor.neighborhood = Neighborhood(exists[window], core, one)
            for name, spec in self.declared.allocated.items():
                if spec.kind == "nav":
                    axes = (1,) * (not spec.extra_shape if by_window else len(nav))
                    array = instance.arrays[name][row : row + 1]
                    udf.results.__dict__[name] = array.reshape((*axes, *spec.extra_shape))
            udf.params.__dict__.update({name: values[window] for name, values in aux.items()})
            process(frames[window].copy())
        cursor.neighborhood = None
        instance.view_all()

    def _process_frames(
        self, instance: Instance, data: Any, process: Callable[[AnyArray], None]
    ) -> None:
        # these views have no axis of frames; a view of a single number keeps it to be writable
        shown = (
            (instance.udf.results, self.declared.allocated),
            (instance.udf.params, {name: self.declared.aux[name] for name in self.aux}),
        )
        for row, frame in enumerate(frames_of(data, instance.backend, writable=True)):
            instance.view_rows(row, row + 1)
            for views, specs in shown:
                for name, spec in specs.items():
                    if spec.kind == "nav" and spec.extra_shape:
                        views.__dict__[name] = views.__dict__[name][0]
            process(frame)
        instance.view_rows(0, self.n_frames)

    def _merge(self, processed: Instance) -> Instance:
        """Return a fresh UDF that has merged the buffers of the partition."""
        merged = self._instance()
        udf, cursor = merged.udf, merged.cursor
        if not hasattr(udf, "merge_all") and not overrides(udf, "merge"):
            # the plan refuses sig and single buffers here
            for name, array in processed.arrays.items():
                merged.arrays[name][...] = array
        elif not self.n_frames:
            udf.preprocess()
        elif hasattr(udf, "merge_all"):
            cursor.merged = (0, self.recipe.grid.n_chunks)
            rows = Shape((self.n_frames, *self.data.shape[1:]), sig_dims=self.data.ndim - 1)
            everything = Slice((0,) * len(rows), rows)
            partials = {everything: PartialViews(dict(processed.arrays))}
            for name, value in udf.merge_all(partials).items():
                target = merged.arrays[name]
                target[...] = np.asarray(value).reshape(target.shape)
        else:
            udf.preprocess()
            cursor.merged = (0, 0)
            udf.merge(Views(dict(merged.arrays)), Views(dict(processed.arrays)))
        return merged

    def _results(self, merged: Instance) -> dict[str, AnyArray]:
        """Return the values of `get_results` in the shape of the dataset."""
        merged.cursor.merged = (0, self.recipe.grid.n_chunks)
        merged.view_all(self.recipe.grid)  # buffers with their places in the scan
        returned: Mapping[str, Any] = dict(merged.udf.get_results().items())
        results = {}
        for name, spec in self.declared.outputs.items():
            value = returned.get(name)
            if name not in returned or (value is None and spec.dtype.kind != "O"):
                value = merged.arrays[name]
            if isinstance(value, MaskedResult):
                value = value.array
            elif isinstance(value, np.ma.MaskedArray):
                value = value.data
            results[name] = self._in_place(spec, _as_array(value, spec))
        return results

    def _in_place(self, spec: BufferSpec, value: AnyArray) -> AnyArray:
        """Return a result in the shape of the dataset, filled outside the ROI."""
        if spec.kind != "nav":
            shape = tuple(self.recipe.shape.sig) if spec.kind == "sig" else ()
            return value.reshape((*shape, *spec.extra_shape))
        full = np.full((self.selected.size, *spec.extra_shape), spec.fill, dtype=spec.dtype)
        if value.size == self.n_frames * math.prod(spec.extra_shape):
            full[self.selected] = value.reshape((self.n_frames, *spec.extra_shape))
        else:
            full[self.selected] = value.reshape(full.shape)[self.selected]
        return full.reshape((*self.recipe.shape.nav, *spec.extra_shape))


def _as_array(value: Any, spec: BufferSpec) -> AnyArray:
    """Return a result as an array of the declared dtype; a single object becomes a 0-d array."""
    if spec.dtype.kind == "O" and spec.kind == "single" and not spec.extra_shape:
        if isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
            return value
        box = np.empty((), dtype=object)
        box[()] = value
        return box
    return np.asarray(value).astype(spec.dtype)
