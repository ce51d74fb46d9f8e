"""Convert the masks of UDFs that only an accessor can read: ROIs, signals, DataArrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from udfdask.plan.declarations import new_instance
from udfdask.udf import UDF


def read_masks(udf: Any, read: Callable[[Any], Any]) -> Any:
    """Return one UDF, or a list, tuple or dictionary of them, with masks as plain arrays.

    `read` returns the array of a mask that it knows, and every other value unchanged. Nothing is
    checked here.
    """
    if isinstance(udf, UDF):
        return _with_read_masks(udf, read)
    return _each(udf, lambda one: read_masks(one, read) if isinstance(one, UDF) else one)


def read_detectors(detectors: Any, read: Callable[[Any], Any]) -> Any:
    """Return one detector, or a list, tuple or dictionary of them, with masks as plain arrays.

    Detectors are UDFs or masks.
    """

    def read_one(detector: Any) -> Any:
        return read_masks(detector, read) if isinstance(detector, UDF) else read(detector)

    if isinstance(detectors, (dict, list, tuple)):
        return _each(detectors, read_one)
    return read_one(detectors)


def _with_read_masks(udf: UDF, read: Callable[[Any], Any]) -> UDF:
    """Return a UDF with plain arrays as masks: itself if it has no others."""
    name = udf._mask_parameter
    if name is None or name not in udf._kwargs:
        return udf
    given = udf._kwargs[name]
    made = _each(given, read) if isinstance(given, (list, tuple, dict)) else read(given)
    return udf if made is given else new_instance(type(udf), {**udf._kwargs, name: made})


def _each(values: Any, change: Callable[[Any], Any]) -> Any:
    """Return a list, tuple or dictionary of changed values; itself if none changes."""
    if isinstance(values, dict):
        made = {name: change(value) for name, value in values.items()}
        same = all(made[name] is value for name, value in values.items())
        return values if same else made
    if type(values) not in (list, tuple):
        return values
    changed = [change(value) for value in values]
    same = all(a is b for a, b in zip(values, changed, strict=True))
    return values if same else type(values)(changed)
