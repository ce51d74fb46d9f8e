"""Write computed results to a file of HyperSpy, completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import missing_package
from udfdask.io.named_variables import Variable, variables_by_name
from udfdask.io.write_hdf5 import check_h5py
from udfdask.writing import HDF5, check_target, replacing


def write_hspy(
    path: str | os.PathLike[str],
    results: Mapping[str, Mapping[str, Variable]],
    *,
    axes: Sequence[Axis] = (),
    attrs: Mapping[str, str] | None = None,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write results to an .hspy file; return its path. The arguments are those of `write_zarr`.

    Each result is a signal with the title ``{udf}_{buffer}``. As in HyperSpy, axes of the scan are
    navigation axes of a nav result, and axes of a frame are signal axes of a sig result.
    """
    h5py, file_writer = check_h5py(), check_rosettasciio()
    target = check_target(path, HDF5, overwrite=overwrite, sources=sources)
    with replacing(target) as unfinished, h5py.File(unfinished, "w") as file:
        for name, variable in variables_by_name(results).items():
            # RosettaSciIO writes files of one signal, and reads files of several
            one = unfinished.with_name("signal")
            file_writer(one, _signal(name, variable, axes, attrs or {}), show_progressbar=False)
            with h5py.File(one, "r") as written:
                file.attrs.update(written.attrs)
                written.copy(f"Experiments/{name}", file.require_group("Experiments"))
    return target.named


def check_rosettasciio() -> Any:
    """Return RosettaSciIO's writer of .hspy files; raise if it is not installed."""
    try:
        from rsciio.hspy import file_writer
    except ImportError as error:
        raise missing_package("rosettasciio", purpose="writing an .hspy file") from error
    return file_writer


def hspy_obstacle(variables: Mapping[str, Variable]) -> str:
    """Return why an .hspy file cannot hold these results; empty if it can."""
    if not variables:
        return "there is no result to write"
    for name, variable in variables.items():
        if variable.values.dtype.kind not in "biufc":
            return f"{name} contains {variable.values.dtype} values, not numbers"
        if not variable.values.size:
            return f"{name} is empty"
    return ""


def _signal(
    name: str, variable: Variable, axes: Sequence[Axis], attrs: Mapping[str, str]
) -> dict[str, Any]:
    """Return a result as RosettaSciIO's dictionary of a signal."""
    known = {axis.name: axis for axis in axes}
    values, kind = variable.values, variable.attrs.get("kind")
    dicts = [
        _axis(known.get(dim, Axis(name=dim)), size, navigate=(kind == "nav") == (dim in known))
        for dim, size in zip(variable.dims, values.shape, strict=True)
    ]
    if kind == "single":
        dicts = [{**each, "navigate": False} for each in dicts]
    elif kind == "sig":  # signal axes come last in the array of a signal
        order = sorted(range(values.ndim), key=lambda dim: not dicts[dim]["navigate"])
        values, dicts = values.transpose(order), [dicts[dim] for dim in order]
    if not dicts:
        values = values.reshape((1,))
        dicts = [_axis(Axis(name="Scalar"), 1, navigate=False)]
    return {
        "data": np.ascontiguousarray(values),
        "axes": dicts,
        "metadata": {
            "General": {"title": name},
            "Signal": {"signal_type": ""},
            "udfdask": {**attrs, **variable.attrs},
        },
        "original_metadata": {},
        "learning_results": {},
        "models": {},
        "tmp_parameters": {},
        "attributes": {"_lazy": False, "ragged": False},
        "package_info": {"package": "", "package_version": ""},
    }


def _axis(axis: Axis, size: int, *, navigate: bool) -> dict[str, Any]:
    """Return an axis as a dictionary of HyperSpy."""
    shared = {"name": axis.name, "units": axis.unit, "navigate": navigate, "is_binned": False}
    if axis.values is not None:
        return {"_type": "DataAxis", **shared, "axis": axis.positions(size)}
    return {
        "_type": "UniformDataAxis",
        **shared,
        "size": size,
        "scale": float(axis.scale),
        "offset": float(axis.offset),
    }
