"""Which factories are the same: those with the same code and content.

A container is often made again in each task, or unpickled in each, with factories that are equal
but not identical.
"""

from __future__ import annotations

import functools
import hashlib
import io
import pickle
import sys
import types
from collections.abc import Hashable
from typing import Any

import cloudpickle


class Identity:
    """Equal to another only if both are about the same object, which it keeps alive."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._thing is other._thing

    def __hash__(self) -> int:
        return id(self._thing)


def identity_of(factories: Any) -> Hashable:
    """Return a key that is equal for equal factories in this process.

    It holds a hash of their pickle. A function of a module is pickled as its name alone: its
    identity is in the key too, so that it is another after its module was edited and loaded
    again. Factories that cannot be pickled are the same if they are identical.
    """
    found: list[Any] = []
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    try:
        _Pickler(stream, found, buffers).dump(factories)
        digest = hashlib.sha256(stream.getbuffer(), usedforsecurity=False)
        for buffer in buffers:
            with buffer.raw() as raw:
                digest.update(raw)
    except _UNPICKLABLE:
        each = factories if isinstance(factories, tuple) else (factories,)
        return tuple(map(Identity, each))
    return (digest.hexdigest(), *map(Identity, found))


def code_of(factories: Any) -> Hashable:
    """Return the code of factories, which stays when they change what they carry."""
    each = factories if isinstance(factories, tuple) else (factories,)
    return tuple(map(_code, each))


def _code(factory: Any) -> Hashable:
    """Return the code of a function, also behind bound arguments; else a type."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    return factory.__code__ if isinstance(factory, types.FunctionType) else Identity(type(factory))


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Notes functions and classes of modules, and leaves the data of arrays where they are."""

    def __init__(self, stream: Any, found: list[Any], buffers: list[Any]) -> None:
        super().__init__(stream, protocol=5, buffer_callback=buffers.append)
        self._found = found

    def reducer_override(self, obj: Any) -> Any:
        """Note an object that its module has under its name; pickle it as ever."""
        if isinstance(obj, (types.FunctionType, type)) and _has(obj.__module__, obj):
            self._found.append(obj)
        return super().reducer_override(obj)


def _has(module: str, thing: Any) -> bool:
    """Return whether a module holds a function or class under its own name."""
    there: Any = sys.modules.get(module)
    for name in thing.__qualname__.split("."):
        there = getattr(there, name, None)
    return there is thing


_UNPICKLABLE = (
    pickle.PicklingError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    BufferError,
)
