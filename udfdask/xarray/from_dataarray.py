"""Turn a DataArray into the dask array that UDFs run over, and its labels."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import xarray as xr

from udfdask.advice import Door
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Calibration, with_different_names
from udfdask.geometry.labels import DataLabels, Dims, aligned, axes_of_data_array, labels_of
from udfdask.geometry.roi import COMPUTE_FIRST
from udfdask.io.opened_file import SIGNAL_DIMS
from udfdask.results.layout import QUANTITY, VALUES, Labels
from udfdask.run.labeled_data import LabeledData


def arrange(
    array: xr.DataArray, sig_dims: Any, roi: Any, keep_attrs: bool | None = None
) -> tuple[LabeledData, Labels]:
    """Return the data of a run with the signal dimensions last, and the labels of its results.

    Axes are moved only if they are not in order, and data without chunks get chunks.
    """
    nav, sig = _split_dims(array.dims, _default_sig_dims(array) if sig_dims is None else sig_dims)
    ordered = array.transpose(*nav, *sig)
    indexes = {dim: array.coords[dim].to_index() for dim in array.dims if dim in array.coords}
    data = DataLabels(nav=nav, sig=sig, sizes=dict(array.sizes), indexes=indexes)
    kept = _wants_attributes(keep_attrs)
    attrs = array.attrs if kept else {}
    labels = Labels(
        nav=nav,
        sig=sig,
        coords=array.coords.to_dataset(),  # 2D coordinates too: they are not transposed
        attrs={name: attrs[name] for name in attrs if name not in QUANTITY | VALUES},
        unit_attrs={name: attrs[name] for name in attrs if name in QUANTITY},
        shows_units=kept,
    )
    labeled = LabeledData(
        door=Door("dataarray", (*nav, *sig)),
        array=_chunked(ordered, nav, sig).data,
        roi=_aligned(roi, data, "nav"),
        labels=data,
        calibration=_calibration(ordered, len(sig)),
        read_mask=partial(_aligned, data=data, kind="sig"),
    )
    return labeled, labels


def _wants_attributes(keep_attrs: bool | None) -> bool:
    """Return whether to keep attributes; None means the option of xarray."""
    if keep_attrs is None:
        keep_attrs = xr.get_options()["keep_attrs"]
        return True if keep_attrs == "default" else bool(keep_attrs)
    if not isinstance(keep_attrs, bool):
        raise ArgumentTypeError(f"keep_attrs must be True, False or None, not {keep_attrs!r}")
    return keep_attrs


def _calibration(array: xr.DataArray, sig_dims: int) -> Calibration:
    axes = axes_of_data_array(array)
    unit = array.attrs.get("units")
    return Calibration(
        axes=with_different_names(axes, sig_dims), unit=unit if isinstance(unit, str) else None
    )


def _default_sig_dims(array: xr.DataArray) -> tuple[str, ...] | int:
    """Return the signal dimensions that the attribute `signal_dims` names; without it, 2.

    Raise if one of them is gone, or if names say that the last two are not frames.
    """
    written = array.attrs.get(SIGNAL_DIMS)
    if written is None:
        _check_not_parted(array)
        return 2
    is_json = isinstance(written, str) and written.startswith("[")
    named = np.atleast_1d(json.loads(written) if is_json else written).tolist()
    if not named or set(named) - set(array.dims):
        # it was renamed, or the array is a sum along it: what is a frame now is only a guess
        raise ArgumentValueError(
            f"the attribute {SIGNAL_DIMS!r} of the DataArray names the signal dimensions {named}, "
            f"but its dimensions are {array.dims}: pass sig_dims=, the names of the dimensions of "
            "a frame"
        )
    return tuple(named)


_PARTNERS = {
    "row": {"col", "column"},
    "col": {"row"},
    "column": {"row"},
    "height": {"width"},
    "width": {"height"},
}
"""Names of the other axis of an image, beside those that differ in x and y."""


def _check_not_parted(array: xr.DataArray) -> None:
    """Raise if one of the last two dimensions belongs to one before them: x in (y, x, time)."""
    nav = {str(dim).lower() for dim in array.dims[:-2]}
    swap = str.maketrans("xy", "yx")
    for dim in array.dims[-2:]:
        name = str(dim).lower()
        partners = {name[:-1] + name[-1:].translate(swap), name[:1].translate(swap) + name[1:]}
        partners |= _PARTNERS.get(name, set())
        if (partners - {name}) & nav:
            raise ArgumentValueError(
                f"the DataArray has the dimensions {array.dims}: by default, a frame has the last "
                f"2, but {dim!r} and a dimension before them belong together. Pass sig_dims=, the "
                "names of the dimensions of a frame, or sig_dims=2 if it is as you want it"
            )


def _split_dims(dims: Dims, sig_dims: Any) -> tuple[Dims, Dims]:
    """Return the navigation and the signal dimensions, each in the order that UDFs see.

    `sig_dims` has the names of the signal dimensions, in the order of the axes of a frame, or their
    number if they are the last ones.
    """
    if len(set(dims)) < len(dims):
        raise ArgumentValueError(f"the DataArray has two dimensions of the same name, {dims}")
    if isinstance(sig_dims, (int, np.integer)) and not isinstance(sig_dims, bool):
        if not 1 <= sig_dims <= len(dims):
            raise ArgumentValueError(
                f"sig_dims must be between 1 and {len(dims)}, the number of dimensions of the "
                f"DataArray, {dims}, not {sig_dims}"
            )
        n_nav = len(dims) - int(sig_dims)
        return dims[:n_nav], dims[n_nav:]
    if not isinstance(sig_dims, (str, list, tuple)):
        raise ArgumentTypeError(
            "sig_dims must be the names of the signal dimensions, such as ('ky', 'kx'), or the "
            f"number of the last ones, not {sig_dims!r}"
        )
    sig = (sig_dims,) if isinstance(sig_dims, str) else tuple(sig_dims)
    if not sig or len(set(sig)) < len(sig) or set(sig) - set(dims):
        raise ArgumentValueError(
            f"sig_dims={sig_dims!r} must name different dimensions of the DataArray, {dims}"
        )
    return tuple(name for name in dims if name not in sig), sig


def _chunked(array: xr.DataArray, nav: Dims, sig: Dims) -> xr.DataArray:
    """Cut an array without chunks into full frames; data that are still in a file stay there."""
    if array.chunks is not None:
        return array
    if not array.size or array.dtype.hasobject:  # dask finds no "auto" chunk size for these
        return array.chunk()
    chunks: dict[Hashable, Any] = {**dict.fromkeys(nav, "auto"), **dict.fromkeys(sig, -1)}
    # a random name: a name derived from the data would need to read all of them
    return array.chunk(chunks, token=uuid4().hex)


def _aligned(values: Any, data: DataLabels, kind: Literal["nav", "sig"]) -> Any:
    """Return a region, or a mask of frames, that is a DataArray in the order of the data.

    A region is repeated along navigation dimensions that it does not have. Other values are
    unchanged.
    """
    if not isinstance(values, xr.DataArray):
        return values
    what, every, own, how = (
        ("roi", "navigation", data.nav, COMPUTE_FIRST)
        if kind == "nav"
        else ("mask", "signal", data.sig, "pass mask.compute()")
    )
    if values.chunks is not None:
        raise ArgumentTypeError(f"the {what} is lazy: {how}")
    if set(values.dims) - set(own) or (kind == "sig" and set(values.dims) != set(own)):
        raise ArgumentValueError(
            f"the {what} has the dimensions {values.dims}, but the {every} dimensions of the data "
            f"are {own}{'; a DataArray is one mask' if kind == 'sig' else ''}"
        )
    advice = f"{what}.reindex_like(data, fill_value=False) is False wherever the {what} is missing"
    labels = labels_of(values)
    return aligned(values.data, labels, data, kind, what=f"the {what}", name=what, advice=advice)


def name_dims(mapped: xr.DataArray, names: Any, labels: Labels) -> xr.DataArray:
    """Name the extra dimensions of a mapped array; those of the data get their coordinates back."""
    if not isinstance(names, (str, list, tuple)):
        raise ArgumentTypeError(f"output_dims must be a name or a list of names, not {names!r}")
    names = [names] if isinstance(names, str) else list(names)
    extra = mapped.dims[len(labels.nav) :]
    # the name of a signal dimension is free, and so is its coordinate, which is then kept
    taken = {*labels.nav, *labels.coords.coords} - {*labels.sig}
    if len(names) != len(extra) or len({*names}) < len(names) or taken & {*names}:
        raise ArgumentValueError(
            f"output_dims={names} must have {len(extra)} different names, other than those of "
            f"{sorted(taken, key=str)}: the function returns arrays of shape "
            f"{mapped.shape[len(labels.nav) :]}"
        )
    named = mapped.rename(dict(zip(extra, names, strict=True)))
    coords = {n: c for n, c in labels.coords.coords.items() if set(c.dims) <= {*named.dims}}
    return named.assign_coords(coords)
