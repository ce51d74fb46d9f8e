"""The labels that results inherit from a signal: axes, metadata, signal type."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from udfdask.geometry.axes import Axis, Calibration, with_different_names
from udfdask.io.hyperspy_axes import read_axis, read_unit

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
    file: dict[str, Any]
    """Name, folder and suffix of the file."""
    signal: dict[str, Any]
    """The node `Signal` of the metadata: signal type, quantity."""
    class_type: str
    """Signal type of the class of the signal: empty if the package of its type is not installed."""

    @property
    def sig_shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return tuple(axis_size(axis) for axis in self.sig_axes)

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
        file=copy.deepcopy(signal.tmp_parameters.as_dictionary()),
        signal=copy.deepcopy(signal_node),
        class_type=signal._signal_type,
    )


def read_calibration(signal: Any) -> Calibration:
    """Return the axes of a signal in the order of UDFs, (*nav, *sig), and the unit of its data."""
    manager = signal.axes_manager
    sig = manager.signal_axes[::-1]
    axes = [read_axis(axis) for axis in (*manager.navigation_axes[::-1], *sig)]
    return Calibration(axes=with_different_names(axes, len(sig)), unit=read_unit(signal))


def axis_size(axis: AxisDict) -> int:
    """Return the size of an axis."""
    return len(axis["axis"]) if "axis" in axis else int(axis["size"])


def extra_axis_dicts(axes: Iterable[Axis], shape: Iterable[int]) -> tuple[AxisDict, ...]:
    """Return the extra axes of a result, with these sizes, as dictionaries of HyperSpy."""
    return tuple(
        {"name": axis.name, "units": axis.unit, **_positions(axis, size)}
        for axis, size in zip(axes, shape, strict=True)
    )


def _positions(axis: Axis, size: int) -> AxisDict:
    """Return the positions along an axis: a scale, or one value for each."""
    if axis.values is not None:
        return {"axis": axis.positions(size)}
    return {"size": size, "scale": axis.scale, "offset": axis.offset}


def copied_axes(axes: Iterable[AxisDict], *, navigate: bool) -> list[AxisDict]:
    """Return copies of axes, all of them navigation axes or all of them signal axes."""
    return [{**copy.deepcopy(axis), "navigate": navigate} for axis in axes]
