"""Make one Dataset of the results of several UDFs, and write it in the format of a file."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import xarray as xr

from udfdask.base.types import Kind
from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.results.layout import dataset_in_file, free_name
from udfdask.results.result import Result
from udfdask.results.zarr_store import plain_name, plain_names

_EXACT = 2**53  # integers up to this number are exact in float64


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """What a file of results contains: lazy or computed results, and names of their valid masks.

    `kinds` has the kind of each result and mask, and the number of its dimensions that are those
    of the data.
    """

    dataset: xr.Dataset
    masks: frozenset[str]
    kinds: Mapping[str, tuple[Kind, int]]

    def without_needless_masks(self) -> xr.Dataset:
        """Return computed results without the masks that are True everywhere."""
        needless = [mask for mask in self.masks if self.dataset[mask].values.all()]
        return self.dataset.drop_vars(needless)


def content_of(
    results: Mapping[str, Result], attrs: Mapping[str, str] | None = None
) -> FileContent:
    """Return what a file of results contains, by the names of their UDFs.

    A result is called ``{udf}_{buffer}``. If a dimension or coordinate of one UDF has the name of
    another one, the name of the UDF is put in front of it.
    """
    merged = xr.Dataset()
    masks: set[str] = set()
    kinds: dict[str, tuple[Kind, int]] = {}
    for udf, result in results.items():
        # of a UDF without results, nothing is saved
        names = {buffer: plain_name(f"{udf}_{buffer}") for buffer in result}
        if not names:
            continue
        if both := kinds.keys() & names.values():
            raise ArgumentValueError(
                f"two results would be called {min(both)!r} in the file, after their UDF and "
                "buffer: give the UDFs other names"
            )
        part, own_masks = dataset_in_file(result, names)
        part = part.rename(plain_names(part))
        renamed = _names_apart(part, merged, udf)
        info = result._info
        n_leading = {"nav": len(info.nav_shape), "sig": len(info.sig_shape), "single": 0}
        for buffer, spec in result.buffers.items():
            part[names[buffer]].attrs.update(udf=udf, kind=str(spec.kind))
            own = [own_masks[buffer]] if buffer in own_masks else []
            masks.update(str(renamed.get(mask, mask)) for mask in own)
            for each in (names[buffer], *own):
                kinds[str(renamed.get(each, each))] = spec.kind, n_leading[spec.kind]
        merged = merged.merge(
            part.rename(renamed), join="exact", compat="override", combine_attrs="drop_conflicts"
        )
    dataset = merged.assign_attrs(attrs or {})
    return FileContent(dataset=dataset, masks=frozenset(masks), kinds=kinds)


def _names_apart(part: xr.Dataset, merged: xr.Dataset, udf: str) -> dict[Hashable, str]:
    """Return other names for what means something else in the Dataset of other UDFs."""
    names: dict[Hashable, str] = {}
    taken = {*merged.variables, *merged.sizes, *part.variables, *part.sizes}
    for name in {**part.sizes, **part.variables}:
        one, other = part.variables.get(name), merged.variables.get(name)
        same = one is other if one is None or other is None else one.identical(other)
        is_known = name in merged.sizes or name in merged.variables
        if is_known and not (same and merged.sizes.get(name) == part.sizes.get(name)):
            names[name] = free_name(plain_name(f"{udf}_{name}"), taken)
            taken.add(names[name])
    return names


def write_npz(path: Path, content: FileContent) -> None:
    """Write results to a file for `numpy.load`; its comment has the attributes as JSON."""
    dataset = content.without_needless_masks()
    with ZipFile(path, "w") as archive:
        # not `numpy.savez`: an array cannot have the name of one of its parameters
        for name, variable in dataset.variables.items():
            values = variable.values
            values = values.astype(str) if values.dtype.hasobject else values  # labels
            with archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, values, allow_pickle=False)
        archive.comment = json.dumps(dataset.attrs).encode()


def write_netcdf(path: Path, content: FileContent) -> None:
    """Write results to a NetCDF 4 file for `xarray.open_dataset`."""
    content.without_needless_masks().to_netcdf(path, engine="h5netcdf")


def write_hspy(path: Path, content: FileContent) -> None:
    """Write results to an .hspy file.

    Each result is a signal with the title ``{udf}_{buffer}``. As in HyperSpy, axes of the scan are
    navigation axes of a nav result, and axes of a frame are signal axes of a sig result.
    """
    import h5py
    from rsciio.hspy import file_writer

    for name, variable in content.without_needless_masks().data_vars.items():
        kind, n_leading = content.kinds.get(str(name), ("single", 0))
        n_extra = variable.ndim - n_leading
        # signal axes come last in the array of a signal
        dims = variable.dims
        if kind == "sig":
            dims = dims[n_leading:] + dims[:n_leading]
        n_nav = {"nav": n_leading, "sig": n_extra}.get(kind, 0)
        signal = _signal(str(name), variable.transpose(*dims), n_nav, content.dataset.attrs)
        # RosettaSciIO writes files of one signal, and reads files of several
        with TemporaryDirectory() as folder, h5py.File(path, "a") as file:
            one = Path(folder) / "signal.hspy"
            file_writer(one, signal, show_progressbar=False)
            with h5py.File(one, "r") as written:
                file.attrs.update(written.attrs)
                written.copy(f"Experiments/{name}", file.require_group("Experiments"))


def write_tiff(path: Path, content: FileContent) -> None:
    """Write a result to a TIFF file, with its axes for ImageJ, DigitalMicrograph and HyperSpy.

    A result of two dimensions is an image, and one of three dimensions is a stack of images. Image
    programs do not read integers of 64 bits, so these are written as float64, if no value changes.
    """
    from rsciio.tiff import file_writer

    ((name, (_, n_leading)),) = (
        each for each in content.kinds.items() if each[0] not in content.masks
    )
    variable = content.dataset[name]
    if variable.ndim - n_leading == 1:  # a stack of images
        variable = variable.transpose(variable.dims[-1], *variable.dims[:-1])
    variable = variable.copy(data=_readable(variable.values))
    file_writer(path, _signal(name, variable, variable.ndim - 2, {}, uniform=True))


def _readable(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return values in a type that image programs read, if it holds them."""
    is_long = values.dtype.kind in "iu" and values.dtype.itemsize == 8
    if is_long and -_EXACT <= int(values.min()) <= int(values.max()) <= _EXACT:
        return values.astype(np.float64)
    return values.astype({"?": "u1", "e": "f4"}.get(values.dtype.char, values.dtype), copy=False)


def _signal(
    name: str, variable: xr.DataArray, n_nav: int, attrs: Any, *, uniform: bool = False
) -> dict[str, Any]:
    """Return a result as RosettaSciIO's dictionary of a signal."""
    if not variable.ndim:
        variable = variable.expand_dims("Scalar")
    own: dict[str, Any] = {**attrs, **variable.attrs}
    labels = {
        str(dim): [str(each) for each in variable[dim].values]
        for dim in variable.dims
        if dim in variable.coords and variable[dim].dtype.kind in "OU"
    }
    if labels:
        own["labels"] = labels  # HyperSpy's axes hold only numbers
    about: dict[str, str] = {"signal_type": ""}
    if "units" in variable.attrs:
        about["quantity"] = f"{name} ({variable.attrs['units']})"
    empty = ("original_metadata", "learning_results", "models", "tmp_parameters")
    return {
        **{node: {} for node in empty},
        "data": np.ascontiguousarray(variable.values),
        "axes": [_axis(variable, dim, dim < n_nav, uniform) for dim in range(variable.ndim)],
        "metadata": {"General": {"title": name}, "Signal": about, "udfdask": own},
        "attributes": {"_lazy": False, "ragged": False},
        "package_info": {"package": "", "package_version": ""},
    }


def _axis(variable: xr.DataArray, place: int, navigate: bool, uniform: bool) -> dict[str, Any]:
    """Return the axis of a dimension as a dictionary of HyperSpy."""
    dim, size = str(variable.dims[place]), variable.shape[place]
    axis = Axis(name=dim)
    if dim in variable.coords and variable[dim].dtype.kind not in "OU":
        axis = axis_of_values(dim, variable[dim].values, variable[dim].attrs.get("units"))
    if uniform and axis.values is not None:  # an image has one scale: other positions are counted
        axis = Axis(name=dim)
    shared = {"name": dim, "units": axis.unit, "navigate": navigate, "is_binned": False}
    if axis.values is not None:
        return {"_type": "DataAxis", **shared, "axis": axis.positions(size)}
    steps = {"size": size, "scale": float(axis.scale), "offset": float(axis.offset)}
    return {"_type": "UniformDataAxis", **shared, **steps}


# functions that write computed results to a new file, by its suffix
WRITERS = {".nc": write_netcdf, ".npz": write_npz, ".hspy": write_hspy, ".tif": write_tiff}
