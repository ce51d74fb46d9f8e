"""Send partial results between processes without a copy of their arrays.

distributed sends arrays from where they are in memory. Objects of classes that it does not know are
pickled first, and their arrays are copied into the pickle: a worker that sent 160 MB of nav results
needed 480 MB. So each process that uses distributed registers how to send partial results.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import cloudpickle
import numpy as np

from udfdask.chunk.partial_result import Finalized, Partial

Arrays = dict[str, Any]
Header = dict[str, Any]
Frames = list[Any]


def send_without_copies() -> None:
    """Tell distributed how to send partial results, if this process has imported distributed."""
    if sys.modules.get("distributed") is not None:
        _register()


@functools.cache
def _register() -> None:
    for cls in (Partial, Finalized):
        register_sending(cls, _parts_of, functools.partial(_from_parts, cls))


def register_sending(
    cls: type[Any],
    parts_of: Callable[[Any], tuple[Any, Mapping[str, Arrays]]],
    from_parts: Callable[[Any, Mapping[str, Arrays]], Any],
) -> None:
    """Tell distributed how to send objects of a class: something small and dictionaries of arrays.

    `parts_of` takes an object apart, `from_parts` puts it together. Objects with arrays of another
    type than NumPy's, or with arrays of objects, are pickled.
    """
    from distributed.protocol import dask_deserialize, dask_serialize  # type: ignore[attr-defined]

    dask_serialize.register(cls, lambda value: _to_frames(*parts_of(value)))
    dask_deserialize.register(cls, lambda header, frames: from_parts(*_from_frames(header, frames)))


def _to_frames(rest: Any, parts: Mapping[str, Arrays]) -> tuple[Header, Frames]:
    """Return arrays as frames, and everything else as a header."""
    from distributed.protocol import serialize  # type: ignore[attr-defined]

    header: Header = {"rest": cloudpickle.dumps(rest), "parts": list(parts), "arrays": []}
    frames: Frames = []
    for part, arrays in parts.items():
        for name, array in arrays.items():
            if type(array) is not np.ndarray or array.dtype.hasobject:
                raise NotImplementedError  # distributed takes pickle then
            about, own = serialize(array)
            header["arrays"].append((part, name, about, len(own)))
            frames += own
    return header, frames


def _from_frames(header: Header, frames: Frames) -> tuple[Any, dict[str, Arrays]]:
    """Return what `_to_frames` was given."""
    from distributed.protocol import deserialize  # type: ignore[attr-defined]

    parts: dict[str, Arrays] = {part: {} for part in header["parts"]}
    remaining = iter(frames)
    for part, name, about, count in header["arrays"]:
        parts[part][name] = deserialize(about, list(itertools.islice(remaining, count)))
    return pickle.loads(header["rest"]), parts


def _parts_of(value: Partial | Finalized) -> tuple[dict[str, Any], dict[str, Arrays]]:
    """Return the fields of a partial result: those that are no arrays, and those with arrays."""
    given = {field.name: getattr(value, field.name) for field in fields(value)}
    parts = {name: part for name, part in given.items() if isinstance(part, dict)}
    return {name: part for name, part in given.items() if name not in parts}, parts


def _from_parts(cls: type[Any], rest: dict[str, Any], parts: Mapping[str, Arrays]) -> Any:
    return cls(**rest, **parts)
