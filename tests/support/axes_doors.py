"""Every door through which data with axes come in, and their results go out, with one interface.

A door makes an object of a scan, cuts and transposes it as its users do, and runs a UDF. `found`
has the axes of each result in the order of its array, and its unit.
"""

from dataclasses import dataclass, field, replace

import dask.array as da
import h5py
import hyperspy.api as hs
import numpy as np
import xarray as xr

import udfdask as ud
import udfdask.hyperspy
import udfdask.xarray
from udfdask.geometry.units import unit_of_quantity
from udfdask.io import open_file

N_NAV = 2


@dataclass(frozen=True)
class Dim:
    """A dimension of a scan: what every door has to keep."""

    name: str
    unit: str | None
    positions: np.ndarray

    def of(self, part):
        return replace(self, positions=self.positions[part])


@dataclass(frozen=True)
class Scan:
    """Values with four dimensions, (*nav, *sig), and their unit."""

    values: np.ndarray = field(repr=False)
    dims: tuple[Dim, ...]
    unit: str | None

    def renamed(self, names):
        dims = tuple(replace(dim, name=names.get(dim.name, dim.name)) for dim in self.dims)
        return replace(self, dims=dims)

    def cut(self, parts):
        values = self.values[tuple(parts)]
        dims = tuple(dim.of(part) for dim, part in zip(self.dims, parts, strict=True))
        return replace(self, values=values, dims=dims)

    def transpose(self, order):
        dims = tuple(self.dims[k] for k in order)
        return replace(self, values=self.values.transpose(order), dims=dims)


def to_axis(dim):
    steps = np.diff(dim.positions)
    if np.ptp(steps) > 1e-6:
        return ud.Axis(name=dim.name, unit=dim.unit, values=tuple(dim.positions.tolist()))
    scale, offset = float(steps[0]), float(dim.positions[0])
    return ud.Axis(name=dim.name, unit=dim.unit, scale=scale, offset=offset)


def to_data_array(scan, *, lazy):
    values = da.from_array(scan.values, chunks=(1, -1, -1, -1)) if lazy else scan.values
    coords = {
        dim.name: (dim.name, dim.positions, {"units": dim.unit} if dim.unit else {})
        for dim in scan.dims
    }
    attrs = {"units": scan.unit} if scan.unit else {}
    names = [dim.name for dim in scan.dims]
    return xr.DataArray(values, dims=names, coords=coords, attrs=attrs, name="frames")


def to_signal(scan, *, lazy):
    signal = hs.signals.Signal2D(scan.values)
    for axis, dim in zip(signal.axes_manager._axes, scan.dims, strict=True):
        made = to_axis(dim)
        if made.values is None:
            axis.scale, axis.offset = made.scale, made.offset
        else:
            axis.convert_to_non_uniform_axis()
            axis.axis = dim.positions
    for axis, dim in zip(signal.axes_manager._axes, scan.dims, strict=True):
        axis.name = dim.name
        if dim.unit:
            axis.units = dim.unit
    if scan.unit:
        signal.metadata.set_item("Signal.quantity", f"Electrons ({scan.unit})")
    return signal.as_lazy() if lazy else signal


class ArrayDoor:
    def __init__(self, scan, folder):
        self.array = da.from_array(scan.values, chunks=(1, -1, -1, -1))
        self.axes, self.unit = [to_axis(dim) for dim in scan.dims], scan.unit

    def cut(self, parts):
        sizes = self.array.shape
        self.axes = [a.sliced(p, n) for a, p, n in zip(self.axes, parts, sizes, strict=True)]
        self.array = self.array[tuple(parts)]

    def transpose(self, order):
        self.array = self.array.transpose(order)
        self.axes = [self.axes[k] for k in order]

    def run(self, udf, **options):
        return ud.run_udf(self.array, udf, axes=self.axes, unit=self.unit, **options)

    def found(self, udf, **options):
        return self.read(self.run(udf, **options))

    def read(self, result):
        """Read the axes of a result, which its Dataset must have too."""
        labeled = read_dataset(result.to_xarray())
        for name, axes in result.axes.items():
            same_axes(read_axes(axes, result[name].shape), labeled[name][0])
            assert labeled[name][1] == result.units[name]
        return labeled


class FileDoor(ArrayDoor):
    """An opened file; `write` makes it."""

    dataset = None

    def __init__(self, scan, folder):
        path = folder / self.file
        self.write(scan, path)
        self.opened = open_file(path, dataset=self.dataset)

    def cut(self, parts):
        self.opened = self.opened[tuple(parts)]

    def transpose(self, order):
        axes = tuple(self.opened.axes[k] for k in order)
        self.opened = replace(self.opened, array=self.opened.array.transpose(order), axes=axes)

    def run(self, udf, **options):
        return ud.run_udf(self.opened, udf, **options)


class ZarrFile(FileDoor):
    file, dataset = "scan.zarr", "frames"

    def write(self, scan, path):
        to_data_array(scan, lazy=False).to_dataset().to_zarr(path, consolidated=False)


class NetcdfFile(FileDoor):
    file = "scan.nc"

    def write(self, scan, path):
        to_data_array(scan, lazy=False).to_netcdf(path, engine="h5netcdf")


class HyperSpyFile(FileDoor):
    file = "scan.hspy"

    def write(self, scan, path):
        to_signal(scan, lazy=False).save(path)


class HDF5File(FileDoor):
    """Axes are dimension scales, as in NetCDF 4."""

    file, dataset = "scan.h5", "frames"

    def write(self, scan, path):
        with h5py.File(path, "w") as file:
            self.fill(file, scan)

    def fill(self, group, scan):
        group["frames"] = scan.values
        set_unit(group["frames"], scan.unit)
        for k, dim in enumerate(scan.dims):
            group[dim.name] = dim.positions
            set_unit(group[dim.name], dim.unit)
            self.attach(group, dim, k)

    def attach(self, group, dim, k):
        group[dim.name].make_scale(dim.name)
        group["frames"].dims[k].attach_scale(group[dim.name])


class NexusFile(HDF5File):
    dataset = "entry/data/frames"

    def write(self, scan, path):
        with h5py.File(path, "w") as file:
            group = file.create_group("entry/data")
            group.attrs.update({"NX_class": "NXdata", "signal": "frames"})
            group.attrs["axes"] = [dim.name for dim in scan.dims]
            self.fill(group, scan)

    def attach(self, group, dim, k):
        group.attrs[f"{dim.name}_indices"] = k


def set_unit(dataset, unit):
    if unit:
        dataset.attrs["units"] = unit


class DataArrayDoor:
    lazy = True

    def __init__(self, scan, folder):
        self.array = to_data_array(scan, lazy=self.lazy)
        self.sig_dims = [dim.name for dim in scan.dims[N_NAV:]]

    def cut(self, parts):
        self.array = self.array.isel(dict(zip(self.array.dims, parts, strict=True)))

    def transpose(self, order):
        self.array = self.array.transpose(*(self.array.dims[k] for k in order))
        self.sig_dims = list(self.array.dims[N_NAV:])

    def run(self, udf, **options):
        return self.array.udf.run_udf(udf, sig_dims=self.sig_dims, **options)

    def found(self, udf, **options):
        return read_dataset(self.run(udf, **options))


class DataArrayInMemory(DataArrayDoor):
    lazy = False


class SignalDoor:
    lazy = False

    def __init__(self, scan, folder):
        self.signal = to_signal(scan, lazy=self.lazy)

    def cut(self, parts):
        y, x, ky, kx = parts
        self.signal = self.signal.inav[x, y].isig[kx, ky]

    def transpose(self, order):
        # HyperSpy counts as in (x, y | kx, ky)
        axes = [self.signal.axes_manager._axes[k] for k in order][::-1]
        self.signal = self.signal.transpose(signal_axes=axes[:2], navigation_axes=axes[2:])

    def found(self, udf, **options):
        done = self.signal.udf.run_udf(udf, show_progressbar=False, **options)
        buffers, extra = done.result.buffers, done.result.extra_axes
        return {n: self.read(done[n], buffers[n].kind, len(extra[n])) for n in done}

    def read(self, signal, kind, n_extra):
        axes = [
            (a.name, a.units if isinstance(a.units, str) else None, np.asarray(a.axis))
            for a in signal.axes_manager._axes
        ]
        if kind == "sig":  # their extra dimensions are navigation axes
            axes = [*axes[n_extra:], *axes[:n_extra]]
        if kind == "single" and not n_extra:
            axes = []  # HyperSpy's axis "Scalar"
        return axes, unit_of_quantity(signal.metadata.get_item("Signal.quantity", default=None))


class LazySignalDoor(SignalDoor):
    lazy = True


def read_axes(axes, shape):
    return [(a.name, a.unit, a.positions(n)) for a, n in zip(axes, shape, strict=True)]


def read_dataset(dataset):
    found = {}
    for name, variable in dataset.data_vars.items():
        axes = []
        for dim, n in variable.sizes.items():
            coordinate = dataset.coords.get(dim, xr.DataArray(np.arange(n)))
            axes.append((dim, coordinate.attrs.get("units"), coordinate.values))
        found[name] = axes, variable.attrs.get("units")
    return found


def same_axes(found, expected):
    """Compare names, units and positions; labels stand for positions of any value."""
    assert [name for name, *_ in found] == [name for name, *_ in expected]
    assert [unit for _, unit, _ in found] == [unit for _, unit, _ in expected]
    for (*_, one), (*_, other) in zip(found, expected, strict=True):
        assert len(one) == len(other)
        if one.dtype.kind == other.dtype.kind == "f" or "i" in one.dtype.kind + other.dtype.kind:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-9)


DOORS = {
    "array": ArrayDoor,
    "zarr": ZarrFile,
    "NetCDF": NetcdfFile,
    "HDF5": HDF5File,
    "NeXus": NexusFile,
    "hspy": HyperSpyFile,
    "DataArray": DataArrayDoor,
    "DataArray in memory": DataArrayInMemory,
    "signal": SignalDoor,
    "lazy signal": LazySignalDoor,
}
