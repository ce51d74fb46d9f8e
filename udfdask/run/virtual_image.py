"""The virtual detector of `virtual_image`, the shortcut of all accessors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from udfdask.run.options import RunOptions, check_names
from udfdask.udfs.virtual_detector import VirtualDetectorUDF

IMAGE = "intensity"
"""Name of the result that is the image."""


class DetectorOptions(RunOptions, total=False):
    """Options of `virtual_image`: the numbers of a detector, and the options of a run."""

    cx: Any
    cy: Any
    r: Any
    ri: Any
    ro: Any
    x: Any
    y: Any
    width: Any
    height: Any
    start: Any
    stop: Any
    center: Any
    centers: Any
    stretch: Any
    stretch_angle: Any


NUMBERS = DetectorOptions.__annotations__.keys() - RunOptions.__annotations__.keys()


def make_detector(
    caller: Callable[..., Any], detector: Any, options: Mapping[str, Any]
) -> tuple[VirtualDetectorUDF, RunOptions]:
    """Return the UDF of a detector, and those of the options that belong to the run."""
    check_names(caller, options)
    numbers = {name: value for name, value in options.items() if name in NUMBERS}
    rest = {name: value for name, value in options.items() if name not in NUMBERS}
    return VirtualDetectorUDF(detector, **numbers), cast(RunOptions, rest)
