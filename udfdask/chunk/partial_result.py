"""Partial results of a chunk: what they hold, those of its parts joined, and how they are sent.

distributed sends arrays from where they are in memory. Objects of classes that it does not know are
pickled first, and their arrays are copied into the pickle: a worker that sent 160 MB of nav results
needed 480 MB. So each process that uses distributed registers how to send partial results.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import cloudpickle
import numpy as np

from udfdask.chunk.frames import signal_windows
from udfdask.chunk.task_context import merge_context
from udfdask.plan.recipe import Recipe
from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """The partial result of one UDF: its buffers over the rows of some neighboring chunks.

    No task writes to the arrays: other tasks may have the same objects.
    """

    arrays: dict[str, AnyArray]
    """Buffers by name; rows in the order of the chunks."""
    first: int
    """The first chunk."""
    stop: int
    """The chunk after the last one."""
    aux: dict[str, AnyArray]
    """The same rows of aux data, if a merge or `get_results` may need them."""
    looked_beyond: bool = False
    """Whether the UDF used `meta.roi` or other things that depend on the ROI outside its chunk."""
    generation: int = 0
    """`Recipe.generation` of the parameters of a chunk, or `MIXED`; 0 after merges."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; objects count as pointers."""
        return sum(int(a.nbytes) for a in (*self.arrays.values(), *self.aux.values()))

    def __sizeof__(self) -> int:
        """Return the size with the arrays: schedulers count it as memory of a worker."""
        return object.__sizeof__(self) + self.nbytes


MIXED = -2
"""Generation of a chunk whose tasks did not all have the same parameters."""


def common_generation(partials: Iterable[Partial]) -> int:
    """Return the generation of partial results over one chunk; `MIXED` if they have several."""
    generations = {partial.generation for partial in partials}
    return generations.pop() if len(generations) == 1 else MIXED


Partials = tuple[Partial | None, ...]
"""The partial result of each UDF of a run over one chunk; None if another group of UDFs has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Finalized:
    """The results of one UDF after `get_results`."""

    arrays: dict[str, AnyArray]
    """Results by name."""
    masks: dict[str, AnyArray]
    """Masks of valid values, for the results that the UDF gave one."""
    chunk: int | None
    """The chunk whose rows nav arrays hold; None for the whole run in flattened order."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; objects count as pointers."""
        return sum(int(a.nbytes) for a in (*self.arrays.values(), *self.masks.values()))

    def __sizeof__(self) -> int:
        """Return the size with the arrays: schedulers count it as memory of a worker."""
        return object.__sizeof__(self) + self.nbytes


def join_parts(recipe: Recipe, chunk: int, parts: Sequence[Partials]) -> Partials:
    """Return the partial results over a whole chunk from those over its signal chunks, in order.

    Nav and single buffers are added up, sig buffers are put next to each other. This is right for
    UDFs that promise `adds_signal_parts`.
    """
    recipe = recipe.now
    with merge_context(recipe):
        return tuple(
            _join(recipe, number, chunk, [part[number] for part in parts])
            for number in range(len(recipe.udfs))
        )


def _join(
    recipe: Recipe, number: int, chunk: int, parts: Sequence[Partial | None]
) -> Partial | None:
    """Return the partial result of a UDF over a whole chunk; None if another group has it."""
    from udfdask.kernels.overflow import add_exactly  # few runs have a task per signal chunk

    ours = [part for part in parts if part is not None]
    if not ours:
        return None
    n_rows, sig = recipe.grid.count(chunk), recipe.shape.sig
    arrays = {}
    for name, spec in recipe.udfs[number].allocated.items():
        joined = spec.allocate(n_rows, sig, recipe.merge_backend(number))
        for window, part in zip(signal_windows(recipe.sig_chunks), ours, strict=True):
            if spec.kind == "sig":
                joined[window] = part.arrays[name]
            else:
                add_exactly(joined, part.arrays[name])
        arrays[name] = joined
    looked_beyond = any(part.looked_beyond for part in ours)
    generation = common_generation(ours)
    return Partial(arrays, chunk, chunk + 1, ours[0].aux, looked_beyond, generation)


def join_groups(groups: Sequence[Partials]) -> Partials:
    """Return the partial results of all UDFs over a chunk from those of each group."""
    return tuple(
        next((partial for partial in partials if partial is not None), None)
        for partials in zip(*groups, strict=True)
    )


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


if "distributed" in sys.modules:
    # a worker has to know how to receive them as soon as it knows their classes
    send_without_copies()
