"""Write computed results to a file of HyperSpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import missing_package
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, axes_of
from udfdask.io.write_hdf5 import check_h5py


def write_hspy(
    path: Path, variables: Mapping[str, Variable], axes: Sequence[Axis], attrs: Mapping[str, str]
) -> None:
    """Write results to an .hspy file; `axes` are those of the data.

    Each result is a signal with the title ``{udf}_{buffer}``. As in HyperSpy, axes of the scan are
    navigation axes of a nav result, and axes of a frame are signal axes of a sig result.
    """
    h5py, file_writer = check_h5py(), check_rosettasciio()
    with h5py.File(path, "w") as file:
        for name, variable in variables.items():
            # RosettaSciIO writes files of one signal, and reads files of several
            one = path.with_name("signal")
            file_writer(one, _signal(name, variable, axes, attrs), show_progressbar=False)
            with h5py.File(one, "r") as written:
                file.attrs.update(written.attrs)
                written.copy(f"Experiments/{name}", file.require_group("Experiments"))


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
    of_data = {axis.name for axis in axes}
    values, kind = variable.values, variable.attrs.get("kind")
    dicts = [
        _axis(axis, size, navigate=(kind == "nav") == (axis.name in of_data))
        for axis, size in zip(axes_of(variable, axes), values.shape, strict=True)
    ]
    if kind == "single":
        dicts = [{**each, "navigate": False} for each in dicts]
    elif kind == "sig":  # signal axes come last in the array of a signal
        order = sorted(range(values.ndim), key=lambda dim: not dicts[dim]["navigate"])
        values, dicts = values.transpose(order), [dicts[dim] for dim in order]
    if not dicts:
        values = values.reshape((1,))
        dicts = [_axis(Axis(name="Scalar"), 1, navigate=False)]
    own: dict[str, Any] = {**attrs, **variable.attrs}
    labels = {axis.name: list(axis.labels) for axis in variable.extra_axes if axis.labels}
    if labels:
        own["labels"] = labels  # HyperSpy's axes hold only numbers
    about: dict[str, str] = {"signal_type": ""}
    if "units" in variable.attrs:
        about["quantity"] = f"{name} ({variable.attrs['units']})"
    return {
        "data": np.ascontiguousarray(values),
        "axes": dicts,
        "metadata": {"General": {"title": name}, "Signal": about, "udfdask": own},
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
