"""Check the promises of a UDF, and choose those that count in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import NAMES, Promises

_ABOUT = {
    "adds_signal_parts": UDFMethod.TILE,
    "only_sums_frames": UDFMethod.TILE,
    "streams_tiles": UDFMethod.TILE,
    "processes_stacks": UDFMethod.FRAME,
    "processes_sums": UDFMethod.TILE,
}
"""Promises that count only if this method processes the data."""

_METHODS = {"processes_stacks": "process_stack", "processes_sums": "process_sums"}
"""Promises about another method."""


def promises_of(udf: UDF) -> Promises:
    """Return the promises of a UDF, after checks."""
    name, promises = type(udf).__name__, udf.promises
    for promise in NAMES:
        # whole_frames = True is an attribute of the class; a promise written so has no effect
        if isinstance(getattr(udf, promise, None), bool):
            raise ArgumentTypeError(
                f"{name}.{promise} has no effect as an attribute, it is a promise: write "
                f"promises = udfdask.Promises({promise}={getattr(udf, promise)!r}) in the class"
            )
    if not isinstance(promises, Promises):
        raise ArgumentTypeError(
            f"{name}.promises must be an instance of udfdask.Promises, not {promises!r}: write "
            f"promises = udfdask.Promises({NAMES[0]}=True), with those that are true among "
            f"{', '.join(NAMES)}"
        )
    return promises


def promises_in_force(udf: UDF, method: UDFMethod, buffers: Mapping[str, BufferSpec]) -> Promises:
    """Return the promises that count in a run with this processing method and these buffers.

    Promises about another processing method do not count.
    """
    promises, name = promises_of(udf), type(udf).__name__
    for promise, about in _ABOUT.items():
        needed = _METHODS.get(promise, f"process_{about.value}")
        has_method = any(callable(getattr(one, needed, None)) for one in (udf, type(udf)))
        if getattr(promises, promise) and not has_method:
            raise ArgumentValueError(
                f"{name} promises {promise}, which is about {needed}(), but has no such method: "
                "implement it, or leave the promise out"
            )
    off = {promise: False for promise, about in _ABOUT.items() if about is not method}
    if not _has_own_sums(udf):
        off["processes_sums"] = False
    if udf.whole_frames:
        off["adds_signal_parts"] = False
    in_force = replace(promises, **off)
    if in_force.adds_signal_parts:
        _check_addable(name, buffers)
    return in_force


def _has_own_sums(udf: UDF) -> bool:
    """Return whether `process_sums` belongs to the `process_tile` of a UDF, and is not declined.

    If a subclass overrides only `process_tile`, the method of its base may do something else.
    """
    if not callable(getattr(udf, "process_sums", None)):
        return False
    first = next(
        vars(cls) for cls in type(udf).__mro__ if {"process_sums", "process_tile"} & set(vars(cls))
    )
    return "process_sums" in first


def _check_addable(name: str, buffers: Mapping[str, BufferSpec]) -> None:
    """Raise if a dtype cannot be summed over signal chunks."""
    for key, spec in buffers.items():
        if spec.use != "result_only" and spec.kind != "sig" and spec.dtype.kind not in "biufcm":
            raise ArgumentValueError(
                f"{name} promises adds_signal_parts, but buffer {key!r} of dtype {spec.dtype} "
                "cannot be added up: leave the promise out"
            )
