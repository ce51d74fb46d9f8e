"""Describe a run field by field, so that a journal can say in which of them another run differs."""

from __future__ import annotations

import reprlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dask.base import is_dask_collection

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.graph.data_identity import DataNames
from udfdask.graph.file_status import FileStatus
from udfdask.graph.input_files import data_files
from udfdask.graph.recorded_graph import Run
from udfdask.plan.recipe import Recipe
from udfdask.records.journal import EVERYTHING, UDFS, Fields
from udfdask.records.names import udf_name, versions
from udfdask.records.record_file import can_store
from udfdask.tokens import UnnamedError
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.writing.stores import store_root


def check_storable(recipe: Recipe) -> None:
    """Raise if the partial results of a UDF cannot be stored, or are not all that it makes."""
    for udf in recipe.udfs:
        dtypes = [(name, spec.dtype) for name, spec in udf.allocated.items()]
        dtypes += [(name, aux.dtype) for name, aux in udf.aux.items()]
        for name, dtype in dtypes:
            if not can_store(dtype):
                raise ArgumentTypeError(
                    f"{udf.name} has {name!r} of dtype {dtype}, which cannot be stored on disk: "
                    "use numbers, texts of fixed length or dates, or no journal and no cache"
                )
        if udf.cls._targets is not UDF._targets:
            raise ArgumentTypeError(
                f"{udf.name} writes a file itself, which partial results do not contain: run it "
                "without a journal or cache"
            )


def names_of(run: Run, names: DataNames) -> tuple[str, list[str]]:
    """Return the names of the data and of all UDFs of a run.

    Raises
    ------
    ArgumentValueError
        If something has no name that is the same in every process.
    """
    recipe = run.recipe
    try:
        data = names.with_files(lambda: names.name(run.array, run.info.source))
        used = [(str(path), status.named()) for path, status in _files(run, names).items()]
        data = names.of_value((data, used))
    except UnnamedError as error:
        raise ArgumentValueError(
            f"cannot recognize the data: they depend on {_short(error.thing)}, which has "
            "no name that is the same in every process. Open files with udfdask.io.open_file, or "
            'pass identity="...", a text that you change whenever the data change'
        ) from None
    udfs = []
    for number, udf in enumerate(recipe.udfs):
        try:
            made = partial(udf_name, recipe, number, run.aux, names.of_value)
            udfs.append(names.with_files(made))
        except UnnamedError as error:
            raise ArgumentValueError(
                f"cannot recognize {udf.name}: it depends on {_short(error.thing)}, "
                "which has no name that is the same in every process. Pass parameters that can be "
                'pickled, and for lazy parameters also identity="..."'
            ) from None
    return data, udfs


def fields_of(run: Run, names: DataNames, data: str, udfs: list[str]) -> Fields:
    """Return what a run is, as texts; `data` and `udfs` are the names from `names_of`."""
    recipe, grid = run.recipe, run.recipe.grid
    fields: Fields = {
        "data: shape": str((*recipe.shape.nav, *recipe.shape.sig)),
        "data: dtype": str(recipe.dtype.str),
        "data: signal dimensions": str(recipe.shape.sig_dims),
        "data: chunks": str((*grid.nav_chunks, *recipe.sig_chunks)),
    }
    if names.identity is not None:
        fields["data: identity"] = names.identity
    files = _files(run, names)
    for path, status in files.items():
        fields[f"data: file {path}"] = status.text(str(path))
    fields[f"data: {EVERYTHING}"] = f"the way they are made (functions, arguments, values) [{data}]"
    fields[UDFS] = ", ".join(udf.name for udf in recipe.udfs)
    for number, udf in enumerate(recipe.udfs):
        topic = f"UDF {number + 1} ({udf.name})"
        fields[f"{topic}: code"] = (
            f"{udf.cls.__module__}.{udf.cls.__qualname__} [{names.of_value(udf.cls)}]"
        )
        for name, value in _parameters(run, number).items():
            fields[f"{topic}: parameter {name}"] = f"{_short(value)} [{names.of_value(value)}]"
        fields[f"{topic}: merges"] = str(udf.merge)
        fields[f"{topic}: array backend"] = udf.backend.name
        fields[f"{topic}: {EVERYTHING}"] = f"what it declares, or how it is run [{udfs[number]}]"
    for path, status in names.files.items():
        if path not in files:
            fields[f"file {path}"] = status.text(str(path))
    roi = "all frames"
    if grid.roi is not None:
        roi = f"{grid.n_frames} of {grid.size} frames [{names.of_value(np.asarray(grid.roi))}]"
    fields["ROI"] = roi
    if grid.present is not None:  # absent frames are no neighbors
        present = np.asarray(grid.present)
        n_present = np.count_nonzero(present)
        fields["positions with a frame"] = f"{n_present} of {grid.size} [{names.of_value(present)}]"
    corrected = recipe.corrections
    fields["corrections"] = (
        "none" if corrected is None else f"a CorrectionSet [{names.of_value(corrected)}]"
    )
    fields["descan"] = _descan(run, names)
    fields["shape of tiles"] = str(tuple(recipe.tiling.shape))
    fields["threads per task"] = str(recipe.threads)
    fields.update({f"version of {name}": text for name, text in versions().items()})
    return fields


def _descan(run: Run, names: DataNames) -> str:
    """Return how frames are shifted, as a text."""
    descan = run.recipe.descan
    if descan is None:
        return "none"
    parts = "parts of a pixel" if descan.subpixel else "whole pixels"
    name = names.of_value((descan, run.aux[-1]))
    return f"by {parts}, with fill={descan.fill!r}, {_short(run.aux[-1])} [{name}]"


def _parameters(run: Run, number: int) -> dict[str, Any]:
    """Return the parameters of a UDF, with all values of its aux data."""
    udf, slots = run.recipe.udfs[number], run.recipe.aux_slots
    values = dict(zip(slots, run.aux, strict=True))
    return {
        name: (value, values[number, name]) if (number, name) in values else value
        for name, value in udf.kwargs.items()
    }


def _files(run: Run, names: DataNames) -> dict[Path, FileStatus]:
    """Return the files that the data come from."""
    if names.identity is not None:
        return {}
    recipe = run.recipe
    lazy = [recipe.lazy_value(*slot) for slot in recipe.lazy_slots]
    lazy += [values for values in run.aux if is_dask_collection(values)]
    paths = {Path(path) for path in data_files(run.array, *lazy)}
    # all files of a zarr store count, not only its metadata
    paths = {store_root(path) for path in paths}
    return {path: names.status(path) for path in sorted(paths)}


def _short(value: Any) -> str:
    """Return a short text for a value, the same in every process."""
    if isinstance(value, str):
        return value if len(value) < 80 else f"{value[:77]}..."
    if isinstance(value, tuple) and value and isinstance(value[0], AuxData):
        value = value[0]
    if isinstance(value, AuxData):
        return f"aux data of kind {value.kind}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        package = type(value).__module__.partition(".")[0]
        return f"a {package}.{type(value).__name__} of shape {shape}"
    plain = (bool, int, float, complex, bytes, str, type(None))
    if isinstance(value, plain):
        return reprlib.repr(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, plain) for v in value):
        return reprlib.repr(value)
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__module__}.{type(value).__qualname__}"
