"""From an array and the labels of the data it was made of to a signal."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import dask.array as da

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentTypeError
from udfdask.hyperspy.labels import AxisDict, SignalLabels, extra_axis_dicts, placed
from udfdask.results.named_results import About
from udfdask.udf.buffers import BufferSpec


def check_dtypes(udf_name: str, buffers: Mapping[str, BufferSpec]) -> None:
    """Raise if there is a result that no signal can hold."""
    for name, spec in buffers.items():
        if spec.dtype.kind not in "biufcVO":
            raise ArgumentTypeError(
                f"{udf_name} has a result {name!r} of dtype {spec.dtype}, but HyperSpy's signals "
                "hold only numbers and Python objects. Declare it with dtype=object, or call "
                "udfdask.run_udf with signal.data as a dask array"
            )


def make_signal(array: Any, about: About, name: str, labels: SignalLabels) -> Any:
    """Take a result in dataset shape, or its valid mask; return it as a signal."""
    kind, extra = about.buffers[name].kind, about.axes[name]
    first = array.ndim - len(extra)
    others = extra_axis_dicts(extra, array.shape[first:])
    nav, sig = (labels.nav_axes if kind == "nav" else ()), others
    if kind == "sig":
        nav, sig = others, labels.sig_axes
        # signals have their signal axes last
        array = array.transpose((*range(first, array.ndim), *range(first)))
    signal = _assembled(array, nav, sig, labels, own_class=kind == "sig")
    _name(signal, about.udf_name, name, extra)
    return signal


def make_mapped(array: Any, extra: tuple[Axis, ...], labels: SignalLabels) -> Any:
    """Take what a function gave for each frame; return it as the signal that `s.map` would give.

    Where it gives frames of the same shape, they keep the signal axes and the signal's class.
    """
    extra_shape = array.shape[array.ndim - len(extra) :]
    same = bool(extra) and extra_shape == labels.sig_shape
    sig = labels.sig_axes if same else extra_axis_dicts(extra, extra_shape)
    return _assembled(array, labels.nav_axes, sig, labels, own_class=same)


def make_nav_signal(array: Any, labels: SignalLabels) -> Any:
    """Take an array of navigation shape; return it as a signal."""
    return _assembled(array, labels.nav_axes, (), labels, own_class=False)


def _assembled(
    array: Any,
    nav: tuple[AxisDict, ...],
    sig: tuple[AxisDict, ...],
    labels: SignalLabels,
    *,
    own_class: bool,
) -> Any:
    """Return a signal of an array and its axes, with the class of the original or a plain one."""
    from hyperspy.api import signals

    ragged = array.dtype == object
    axes = placed(nav, navigate=True) + placed(sig, navigate=ragged)
    if not axes and not ragged:
        # as HyperSpy's own s.sum() over everything
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
    # assigns the class; of a type that is not installed HyperSpy would complain each time
    signal.set_signal_type(labels.class_type if own_class else "")
    if own_class:
        signal.metadata.Signal.signal_type = labels.signal.get("signal_type", "")
    return signal


def _name(signal: Any, udf_name: str, name: str, extra: tuple[Axis, ...]) -> None:
    """Write down which result a signal shows, in its title, file name and metadata."""
    title = signal.metadata.General.title
    signal.metadata.General.title = f"{name} of {title}" if title else name
    if signal.tmp_parameters.has_item("filename"):
        # or s.save() would write over the file that the data were read from
        signal.tmp_parameters.filename += f"_{name}"
    node: dict[str, Any] = {"udf": udf_name, "result": name}
    labelled = {axis.name: list(axis.labels) for axis in extra if axis.labels is not None}
    if labelled:
        node["labels"] = labelled  # HyperSpy's axes have numbers only
    signal.metadata.add_dictionary({"udfdask": node})
