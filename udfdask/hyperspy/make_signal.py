"""Make signals from arrays and the labels of the input signal."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import dask.array as da

from udfdask.errors import ArgumentTypeError
from udfdask.geometry.axes import Axis
from udfdask.geometry.labels import Place
from udfdask.hyperspy.labels import AxisDict, SignalLabels, copied_axes, extra_axis_dicts
from udfdask.results.named_results import ResultInfo
from udfdask.udf.buffers import BufferSpec


def check_dtypes(udf_name: str, buffers: Mapping[str, BufferSpec]) -> None:
    """Raise if a signal cannot hold one of the results."""
    for name, spec in buffers.items():
        if spec.dtype.kind not in "biufcVO":
            raise ArgumentTypeError(
                f"{udf_name} has a result {name!r} of dtype {spec.dtype}, but HyperSpy's signals "
                "hold only numbers and Python objects: declare it with dtype=object, or pass "
                "ragged=True to map_frames"
            )


def make_signal(
    array: Any, info: ResultInfo, place: Place, name: str, labels: SignalLabels, *, is_mask: bool
) -> Any:
    """Return a result in data set shape, or its valid mask, as a signal; `place` is that of it."""
    kind, extra = info.buffers[place.result].kind, place.axes
    first = array.ndim - len(extra)
    others = extra_axis_dicts(extra, array.shape[first:])
    nav, sig = (labels.nav_axes if kind == "nav" else ()), others
    if kind == "sig":
        nav, sig = others, labels.sig_axes
        # signal axes come last in the array of a signal
        array = array.transpose((*range(first, array.ndim), *range(first)))
    signal = _make(array, nav, sig, labels, own_class=kind == "sig")
    _name(signal, name)
    node: dict[str, Any] = {"udf": info.udf_name, "result": name, "parameters": info.parameters}
    if axis_labels := {axis.name: list(axis.labels) for axis in extra if axis.labels is not None}:
        node["labels"] = axis_labels  # HyperSpy's axes hold only numbers
    if notes := info.notes:
        node["note"] = "\n".join(notes)
    signal.metadata.add_dictionary({"udfdask": node})
    if kind == "sig" and place.result in info.in_units and not is_mask:
        return signal  # with the quantity of the data
    unit = None if is_mask else info.units.get(place.result)
    if unit is not None:
        signal.metadata.set_item("Signal.quantity", f"{name} ({unit})")
    elif signal.metadata.has_item("Signal.quantity"):
        del signal.metadata.Signal.quantity
    return signal


def make_mapped(array: Any, extra: tuple[Axis, ...], name: str, labels: SignalLabels) -> Any:
    """Return the values of a function for each frame as a signal, as `s.map` does.

    `name` is that of the function, for signals without a title. Frames of the original shape keep
    the signal axes and the class of the signal.
    """
    extra_shape = array.shape[array.ndim - len(extra) :]
    same = bool(extra) and extra_shape == labels.sig_shape
    sig = labels.sig_axes if same else extra_axis_dicts(extra, extra_shape)
    signal = _make(array, labels.nav_axes, sig, labels, own_class=same)
    title = signal.metadata.General.title
    _name(signal, name)
    if title:  # as in s.map
        signal.metadata.General.title = title
    return signal


def make_nav_signal(array: Any, labels: SignalLabels) -> Any:
    """Return an array of navigation shape as a signal."""
    return _make(array, labels.nav_axes, (), labels, own_class=False)


def _make(
    array: Any,
    nav: tuple[AxisDict, ...],
    sig: tuple[AxisDict, ...],
    labels: SignalLabels,
    *,
    own_class: bool,
) -> Any:
    """Return a signal with these axes, and with the class of the input signal or the base class."""
    from hyperspy.api import signals

    ragged = array.dtype == object
    axes = copied_axes(nav, navigate=True) + copied_axes(sig, navigate=ragged)
    if not axes and not ragged:
        # HyperSpy's own s.sum() over all axes returns this axis too
        axes = [{"size": 1, "name": "Scalar", "navigate": False}]
    base = signals.LazySignal if isinstance(array, da.Array) else signals.BaseSignal
    metadata = copy.deepcopy(labels.metadata)
    if own_class:
        metadata["Signal"] = copy.deepcopy(labels.signal)
    signal = base(
        array if array.ndim else array.reshape((1,)),
        axes=axes,
        metadata=metadata,
        original_metadata=copy.deepcopy(labels.original_metadata),
        ragged=ragged,
    )
    signal.tmp_parameters.add_dictionary(copy.deepcopy(labels.file))
    # assigns the class; HyperSpy warns each time for a type that is not installed
    signal.set_signal_type(labels.class_type if own_class else "")
    if own_class:
        signal.metadata.Signal.signal_type = labels.signal.get("signal_type", "")
    return signal


def _name(signal: Any, name: str) -> None:
    """Store the name of the result in the title and file name of a signal."""
    title = signal.metadata.General.title
    signal.metadata.General.title = f"{name} of {title}" if title else name
    if signal.tmp_parameters.has_item("filename"):
        # otherwise s.save() would overwrite the file of the input signal
        signal.tmp_parameters.filename += f"_{name}"
