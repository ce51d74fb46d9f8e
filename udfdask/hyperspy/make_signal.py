"""Make signals from arrays and the labels of the input signal: axes, metadata, signal type."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
from hyperspy.api import signals

from udfdask.geometry.axes import Axis, Calibration, with_different_names
from udfdask.geometry.labels import Place, axes_of_signal
from udfdask.io.hyperspy_file import read_unit, read_voltage
from udfdask.results.named_results import ResultInfo

AxisDict = dict[str, Any]
"""An axis as a dictionary of HyperSpy: uniform, functional, or one value per position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalLabels:
    """The labels of a signal."""

    nav_axes: tuple[AxisDict, ...]
    """Navigation axes in the order of the array: y before x."""
    sig_axes: tuple[AxisDict, ...]
    """Signal axes in the order of the array."""
    metadata: dict[str, Any]
    """Metadata without entries that describe only these data: variance, navigator, markers."""
    original_metadata: dict[str, Any]
    """Metadata from the file."""
    signal: dict[str, Any]
    """The node `Signal` of the metadata: signal type, quantity."""
    class_type: str
    """Signal type of the class of the signal: empty if the package of its type is not installed."""

    @property
    def sig_shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return tuple(len(a["axis"]) if "axis" in a else int(a["size"]) for a in self.sig_axes)

    def of(self, name: str | None) -> SignalLabels:
        """Return the labels for the results of a UDF with a name, such as "BF", in the titles."""
        if name is None:
            return self
        general = dict(self.metadata.get("General", {}))
        title = general.get("title")
        general["title"] = f"{name} of {title}" if title else name
        return replace(self, metadata={**self.metadata, "General": general})


def read_labels(signal: Any) -> SignalLabels:
    """Return the labels of a signal."""
    manager = signal.axes_manager
    metadata = signal.metadata.as_dictionary()
    for other_data in ("_HyperSpy", "Markers"):
        metadata.pop(other_data, None)
    signal_node = metadata.pop("Signal", {})
    signal_node.pop("Noise_properties", None)
    return SignalLabels(
        nav_axes=tuple(manager._get_navigation_axes_dicts()),
        sig_axes=tuple(manager._get_signal_axes_dicts()),
        metadata=copy.deepcopy(metadata),
        original_metadata=copy.deepcopy(signal.original_metadata.as_dictionary()),
        signal=copy.deepcopy(signal_node),
        class_type=signal._signal_type,
    )


def read_calibration(signal: Any) -> Calibration:
    """Return the axes of a signal in the order of UDFs, (*nav, *sig), its unit and voltage."""
    named = with_different_names(axes_of_signal(signal), len(signal.axes_manager.signal_axes))
    return Calibration(axes=named, unit=read_unit(signal), voltage=read_voltage(signal))


def _extra_axis_dicts(axes: Iterable[Axis], shape: Iterable[int]) -> tuple[AxisDict, ...]:
    """Return the extra axes of a result, with these sizes, as dictionaries of HyperSpy."""
    found: list[AxisDict] = []
    for axis, size in zip(axes, shape, strict=True):
        even = {"size": size, "scale": axis.scale, "offset": axis.offset}
        where = even if axis.values is None else {"axis": axis.positions(size)}
        found.append({"name": axis.name, "units": axis.unit, **where})
    return tuple(found)


def copied_axes(axes: Iterable[AxisDict], *, navigate: bool) -> list[AxisDict]:
    """Return copies of axes, all of them navigation axes or all of them signal axes."""
    return [{**copy.deepcopy(axis), "navigate": navigate} for axis in axes]


def make_signal(
    array: Any, info: ResultInfo, place: Place, name: str, labels: SignalLabels, *, is_mask: bool
) -> Any:
    """Return a result in data set shape, or its valid mask, as a signal; `place` is that of it."""
    kind, extra = info.buffers[place.result].kind, place.axes
    first = array.ndim - len(extra)
    others = _extra_axis_dicts(extra, array.shape[first:])
    nav, sig = (labels.nav_axes if kind == "nav" else ()), others
    if kind == "sig":
        nav, sig = others, labels.sig_axes
        # signal axes come last in the array of a signal
        array = array.transpose((*range(first, array.ndim), *range(first)))
    signal = _make(array, nav, sig, labels, own_class=kind == "sig")
    title = signal.metadata.General.title
    signal.metadata.General.title = f"{name} of {title}" if title else name
    node: dict[str, Any] = {"udf": info.udf_name, "result": name, **info.arguments}
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
    """Return the values of a function for each frame as a signal; untitled ones get its `name`.

    Frames of the original shape keep the signal axes and the class of the signal.
    """
    extra_shape = array.shape[array.ndim - len(extra) :]
    same = bool(extra) and extra_shape == labels.sig_shape
    sig = labels.sig_axes if same else _extra_axis_dicts(extra, extra_shape)
    signal = _make(array, labels.nav_axes, sig, labels, own_class=same)
    signal.metadata.General.title = signal.metadata.General.title or name  # as in s.map
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
    # assigns the class; HyperSpy warns each time for a type that is not installed
    signal.set_signal_type(labels.class_type if own_class else "")
    if own_class:
        signal.metadata.Signal.signal_type = labels.signal.get("signal_type", "")
    return signal
