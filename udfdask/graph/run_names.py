"""Name the data and the UDFs of a run, so that other processes find its partial results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dask.base import is_dask_collection

from udfdask.errors import ArgumentValueError
from udfdask.graph.data_identity import DataNames
from udfdask.graph.file_status import FileStatus
from udfdask.graph.input_files import data_files
from udfdask.graph.recorded_graph import Run
from udfdask.names import UnnamedError
from udfdask.plan.recipe import Recipe
from udfdask.records.names import udf_name, with_versions
from udfdask.records.record_file import can_store
from udfdask.udf import UDF
from udfdask.writing.stores import store_root


def names_of(run: Run, names: DataNames) -> tuple[str, list[str]]:
    """Return the names of the data and of all UDFs of a run.

    Raises
    ------
    ArgumentValueError
        If something has no name that is the same in every process, or partial results cannot be
        stored.
    """
    recipe = run.recipe
    _check_storable(recipe)
    try:
        data = names.with_outside(lambda: names.name(run.array))
        used = [(str(path), status.named()) for path, status in _files(run, names).items()]
        data = names.of_value((data, used))
    except UnnamedError as error:
        raise ArgumentValueError(
            f"cannot recognize the data: they depend on {_short(error.thing)}, which has no name "
            "that is the same in every process. Open files with udfdask.io.open_file"
        ) from None
    udfs = []
    for number, udf in enumerate(recipe.udfs):
        try:
            made = partial(udf_name, recipe, number, run.aux, names.of_value)
            udfs.append(names.with_outside(made, udf.kwargs))
        except UnnamedError as error:
            raise ArgumentValueError(
                f"cannot recognize {udf.name}: it depends on {_short(error.thing)}, which has no "
                "name that is the same in every process. Pass parameters that can be pickled"
            ) from None
    return data, udfs


def name_of_runs(runs: Sequence[Run], more: Any) -> str:
    """Return a name of runs, the same in every process; empty without runs.

    `more` is what else the name depends on. Raise an ArgumentValueError as `names_of`.
    """
    names = DataNames()
    found = []
    for run in runs:
        data, udfs = names_of(run, names)
        grid = run.recipe.grid
        frames = [None if mask is None else np.asarray(mask) for mask in (grid.roi, grid.present)]
        found.append((data, [with_versions(udf) for udf in udfs], frames))
    return names.of_value((found, more)) if found else ""


def _check_storable(recipe: Recipe) -> None:
    """Raise if the partial results of a UDF cannot be stored, or are not all that it makes."""
    for udf in recipe.udfs:
        dtypes = [(name, spec.dtype) for name, spec in udf.allocated.items()]
        dtypes += [(name, aux.dtype) for name, aux in udf.aux.items()]
        for name, dtype in dtypes:
            if not can_store(dtype):
                raise ArgumentValueError(
                    f"{udf.name} has {name!r} of dtype {dtype}, which cannot be stored on disk"
                )
        if udf.cls._targets is not UDF._targets:
            raise ArgumentValueError(
                f"{udf.name} writes a file itself, which partial results do not contain"
            )


def _files(run: Run, names: DataNames) -> dict[Path, FileStatus]:
    """Return the files that the data come from."""
    recipe = run.recipe
    lazy = [recipe.lazy_value(*slot) for slot in recipe.lazy_slots]
    lazy += [values for values in run.aux if is_dask_collection(values)]
    # all files of a zarr store count, not only its metadata
    paths = {store_root(Path(path)) for path in data_files(run.array, *lazy)}
    return {path: names.status(path) for path in sorted(paths)}


def _short(value: Any) -> str:
    """Return a short text for a value."""
    if isinstance(value, str):
        return value if len(value) < 80 else f"{value[:77]}..."
    return f"a {type(value).__module__}.{type(value).__qualname__}"
