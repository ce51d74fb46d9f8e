"""What results take over from the signal they were made of: axes, metadata, signal type."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from udfdask.arrays.geometry.axes import Axis

AxisDict = dict[str, Any]
"""An axis as HyperSpy writes it down: uniform, functional, or one value per position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalLabels:
    """What a signal says about its data."""

    nav_axes: tuple[AxisDict, ...]
    """Navigation axes in the order of the array: y before x."""
    sig_axes: tuple[AxisDict, ...]
    """Signal axes in the order of the array."""
    metadata: dict[str, Any]
    """Metadata, without what belongs to these very data: variance, navigator, markers, type."""
    original_metadata: dict[str, Any]
    """Metadata as the file had them."""
    file: dict[str, Any]
    """Name, folder and suffix of the file."""
    signal: dict[str, Any]
    """The node `Signal` of the metadata: signal type, quantity."""
    class_type: str
    """The signal type whose class the signal has: empty if its type is not installed."""

    @property
    def sig_shape(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return tuple(axis_size(axis) for axis in self.sig_axes)


def read_labels(signal: Any) -> SignalLabels:
    """Take a signal; return its labels."""
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


def axis_size(axis: AxisDict) -> int:
    """Take an axis as HyperSpy writes it down; return its size."""
    return len(axis["axis"]) if "axis" in axis else int(axis["size"])


def extra_axis_dicts(axes: Iterable[Axis], shape: Iterable[int]) -> tuple[AxisDict, ...]:
    """Take the extra axes of a result and their sizes; return them as HyperSpy writes them down."""
    return tuple(
        {
            "size": size,
            "name": axis.name,
            "units": axis.unit,
            "scale": axis.scale,
            "offset": axis.offset,
        }
        for axis, size in zip(axes, shape, strict=True)
    )


def placed(axes: Iterable[AxisDict], *, navigate: bool) -> list[AxisDict]:
    """Take axes; return copies of them that are navigation axes, or signal axes."""
    return [{**copy.deepcopy(axis), "navigate": navigate} for axis in axes]
