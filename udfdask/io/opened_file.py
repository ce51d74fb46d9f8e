"""The value that opening a file returns, and how readers make it."""

from __future__ import annotations

import json
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError, missing_package
from udfdask.geometry.axes import Axis, with_different_names
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.shapes import Shape, in_words
from udfdask.io.lazy_source import StoredArray, choose_chunks, lazy_array

if TYPE_CHECKING:
    import xarray as xr

    from udfdask.corrections import CorrectionSet

# The attribute of a DataArray with the names of the signal dimensions, a list as JSON: not all
# formats that xarray writes have lists of strings (netCDF 3 has none).
SIGNAL_DIMS = "signal_dims"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file that has been opened lazily.

    Raises
    ------
    ArgumentValueError
        If `sig_dims` or the number of axes does not fit the array.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask.io import open_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.npy"
    ...     np.save(path, np.ones((3, 4, 8, 8), np.uint8))
    ...     opened = open_file(path)
    >>> opened.array.shape, opened.sig_dims, opened.reader
    ((3, 4, 8, 8), 2, 'NumPy')
    >>> [axis.name for axis in opened.axes]
    ['y', 'x', 'sig_y', 'sig_x']
    >>> part = opened[:2, 1:]  # a part of the data, with the axes of that part
    >>> part.array.shape, part.axes[1].offset
    ((2, 3, 8, 8), 1.0)
    """

    array: da.Array
    """The data, shape (*nav, *sig)."""
    sig_dims: int
    """Number of trailing dimensions that are the signal: 2 for detector frames, 1 for spectra."""
    reader: str
    """The reader of the file, in words."""
    title: str
    """The title of the recording that the file contains, otherwise the name of the file."""
    axes: tuple[Axis, ...]
    """One axis for each dimension of `array`; in pixels if the file does not describe it."""
    unit: str | None = None
    """Unit of the values, such as "counts"; None if the file does not say it."""
    voltage: float | None = None
    """Acceleration voltage of the electrons, in volts; None if the file does not say it."""
    present: BoolArray | None = None
    """Mask of the scan positions that have a frame, shape nav; None for all. Runs leave out the
    others, which are zeros in `array`."""
    corrections: CorrectionSet | None = None
    """Broken pixels and gain of the detector, as the file lists them; None if it does not. They are
    not applied: pass them to the run, ``run_udf(opened, udf, corrections=opened.corrections)``."""

    def __post_init__(self) -> None:
        choose_sig_dims(self.sig_dims, self.array.ndim)
        if len(self.axes) != self.array.ndim:
            raise ArgumentValueError(
                f"axes must have an Axis for each of {self.array.ndim} dimensions: {self.axes}"
            )

    def __getitem__(self, index: Any) -> OpenedFile:
        """Return a part of the data, with the axes of that part.

        Parameters
        ----------
        index : slice, int, Ellipsis or tuple of them
            The part, as in ``array[index]``. A dimension with an integer is dropped.

        Returns
        -------
        OpenedFile
            The part, as lazy as the file.

        Raises
        ------
        ArgumentTypeError
            If the index has other values, such as lists.
        ArgumentValueError
            If the index drops all signal dimensions.
        """
        array = self.array
        parts = list(index) if isinstance(index, tuple) else [index]
        basic = (int, np.integer, slice, EllipsisType)
        if any(isinstance(part, bool) or not isinstance(part, basic) for part in parts):
            raise ArgumentTypeError(
                f"an opened file takes slices and integers, such as opened[2:5, ::2], not "
                f"{index!r}: for anything else take opened.array, which has no axes"
            )
        if Ellipsis not in parts:
            parts.append(Ellipsis)
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (array.ndim - len(parts) + 1)
        taken = array[tuple(parts)]
        axes = tuple(
            axis.sliced(part, n)
            for axis, part, n in zip(self.axes, parts, array.shape, strict=True)
            if isinstance(part, slice)
        )
        nav, sig = parts[: array.ndim - self.sig_dims], parts[array.ndim - self.sig_dims :]
        present = None if self.present is None else np.array(self.present[tuple(nav)])
        if present is not None:
            present.flags.writeable = False
            present = None if present.all() else present
        sig_dims = sum(isinstance(part, slice) for part in sig)
        corrections = self.corrections
        if corrections is not None and sig != [slice(None)] * len(sig):
            from udfdask.corrections.correction_set import part_of

            corrections = part_of(corrections, tuple(sig), array.shape[-self.sig_dims :])
        how: dict[str, Any] = {"axes": axes, "present": present, "corrections": corrections}
        return replace(self, array=taken, sig_dims=sig_dims, **how)

    def to_xarray(self) -> xr.DataArray:
        """Return the data as a DataArray, with the names, positions and units of the axes.

        Nothing is read. After ``import udfdask.xarray``, the DataArray has the accessor `udf`,
        which takes its default of `sig_dims` from the attribute `signal_dims`.

        Returns
        -------
        xarray.DataArray, shape (*nav, *sig)
            The same dask array, with the axes as dimensions. Its attribute `units` is the unit of
            the values, and `signal_dims` a JSON list of the signal dimensions. Axes of pixel
            numbers have no coordinate. If some scan positions have no frame, the coordinate
            `present` is a mask of the others: pass it as `roi`.

        Raises
        ------
        ImportError
            If xarray is not installed.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray
        >>> from udfdask import Axis
        >>> from udfdask.io import OpenedFile
        >>> from udfdask.udfs import SumSigUDF
        >>> axes = (Axis(name="x", unit="nm", scale=0.5), Axis(name="E", unit="eV"))
        >>> opened = OpenedFile(array=da.ones((3, 8)), sig_dims=1, reader="", title="", axes=axes)
        >>> scan = opened.to_xarray()
        >>> scan.dims, scan.x.values, scan.x.units, scan.signal_dims
        (('x', 'E'), array([0. , 0.5, 1. ]), 'nm', '["E"]')
        >>> scan.udf.run_udf(SumSigUDF())["intensity"].sel(x=0.5).compute().item()
        8.0
        """
        try:
            import xarray as xr
        except ImportError as error:
            raise missing_package("xarray", purpose="to_xarray", extra="xarray") from error

        dims = [axis.name for axis in self.axes]
        coords: dict[Hashable, Any] = {}
        for axis, n in zip(self.axes, self.array.shape, strict=True):
            coords.update(coordinate(axis.name, axis, n))
        if self.present is not None:
            name = "present"
            while name in dims:
                name += "_"
            coords[name] = (dims[: self.present.ndim], self.present)
        attrs = {"units": self.unit} if self.unit else {}
        attrs[SIGNAL_DIMS] = json.dumps(dims[-self.sig_dims :], ensure_ascii=False)
        made = xr.DataArray(self.array, coords, dims=dims, attrs=attrs)
        return made.rename(own_name(made))

    def __repr__(self) -> str:
        array = self.array
        dims = ", ".join(map(_axis_text, self.axes, array.shape))
        unit = f" in {self.unit}" if self.unit else ""
        lines = [
            f"<OpenedFile {self.title!r}, {self.reader}>",
            f"  {in_words(Shape(array.shape, sig_dims=self.sig_dims))}",
            f"  {array.dtype}{unit}, chunks {array.chunksize}, sig_dims {self.sig_dims}",
            f"  dimensions: {dims}",
        ]
        if self.voltage is not None:
            lines.append(f"  voltage {self.voltage / 1e3:g} kV")
        if self.present is not None:
            n_absent = self.present.size - np.count_nonzero(self.present)
            lines.append(f"  without a frame: {n_absent} of {self.present.size} positions")
        if self.corrections is not None:
            lines.append(f"  corrections, not applied: {self.corrections!r}")
        return "\n".join(lines)

    __iter__ = None  # an index would otherwise make it iterable


def _axis_text(axis: Axis, n: int) -> str:
    """Return the name of an axis, its number of positions, and the distance between them."""
    if axis.unit is None:
        return f"{axis.name} {n}"
    step = f"{axis.scale:.4g}" if axis.values is None else "uneven,"
    return f"{axis.name} {n} ({step} {axis.unit})"


def own_name(array: Any) -> Hashable | None:
    """Return the name of a DataArray; None if it is that of a dask array, "zeros-4ef2a9..."."""
    # without chunks, the attribute `data` would read a file
    is_token = array.chunks is not None and array.name == array.data.name
    return None if is_token else array.name


def coordinate(dim: Hashable, axis: Axis, n: int) -> dict[Hashable, Any]:
    """Return the coordinate of a dimension; none if its axis is just pixel numbers."""
    # values and labels may be arrays, which `==` cannot compare to None
    if axis.values is None and axis.labels is None and axis == Axis(name=axis.name):
        return {}
    # labels as objects: zarr warns about text of fixed length, which its format 3 does not specify
    values = axis.positions(n) if axis.labels is None else np.array(axis.labels, dtype=object)
    return {dim: (dim, values, {"units": axis.unit} if axis.unit else {})}


def open_source(
    source: StoredArray, *, sig_dims: int | None, chunks: Any, prefix: str, **described: Any
) -> OpenedFile:
    """Return the opened file of a source; `prefix` is the prefix of the array's name."""
    sig = choose_sig_dims(sig_dims, source.ndim)
    array = lazy_array(source, choose_chunks(source, sig, chunks), prefix=prefix)
    return opened_array(array, sig, **described)


def opened_array(
    array: da.Array,
    sig_dims: int,
    *,
    reader: str,
    title: str,
    axes: Sequence[Axis | None] = (),
    unit: Any = None,
    voltage: float | None = None,
) -> OpenedFile:
    """Return the opened file of a lazy array; what is not known is None."""
    return OpenedFile(
        array=array,
        sig_dims=sig_dims,
        reader=reader,
        title=title,
        axes=with_different_names(axes or [None] * array.ndim, sig_dims),
        unit=unit if isinstance(unit, str) and unit else None,
        voltage=voltage,
    )


def choose_sig_dims(asked: int | None, ndim: int, *, known: int = 0) -> int:
    """Return the number of signal dimensions; `known` is what the file says, 0 for nothing."""
    if asked is None:
        return known or (1 if ndim <= 2 else 2)
    if not 1 <= asked <= ndim:
        raise ArgumentValueError(
            f"sig_dims must be from 1 to {ndim}, the number of dimensions in the file, got {asked}"
        )
    return asked


def sizes(shape: int | Sequence[int], *, name: str) -> tuple[int, ...]:
    """Return the user's shape as a tuple of positive integers."""
    try:
        given = shape if isinstance(shape, Sequence) else (shape,)
        checked = tuple(operator.index(size) for size in given)
    except TypeError as error:
        raise ArgumentTypeError(f"{name} must be integers such as (8, 8), got {shape!r}") from error
    if any(size < 1 for size in checked):
        raise ArgumentValueError(f"{name} must have positive sizes such as (8, 8), got {shape!r}")
    return checked
