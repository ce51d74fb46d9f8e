"""Make classes of udfdask of LiberTEM's UDFs, with `meta` as LiberTEM shows it."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.backends.backend import locked
from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec, declare
from udfdask.udf.meta import UDFMeta


class LiberTEMMeta:
    """A view of `UDFMeta` whose shapes and slices are LiberTEM's.

    With `takes_partitions`, a chunk whose frames are not a range comes as several partitions.
    """

    __slots__ = ("_meta", "_takes_partitions")

    def __init__(self, meta: UDFMeta, takes_partitions: bool) -> None:
        self._meta = meta
        self._takes_partitions = takes_partitions

    def __getattr__(self, name: str) -> Any:
        if name == "partition_shape" and self._takes_partitions:
            return _shape(self._meta.slice.shape)
        value = getattr(self._meta, name)
        if isinstance(value, Shape):
            return _shape(value)
        return _slice(value) if isinstance(value, Slice) else value

    def __reduce__(self) -> tuple[Any, ...]:
        return (LiberTEMMeta, (self._meta, self._takes_partitions))

    @property
    def corrections(self) -> Any:
        """Corrections of the data; an empty set if there are none."""
        from libertem.io.corrections import CorrectionSet

        ours = self._meta.corrections
        if ours is None:
            return CorrectionSet()
        excluded = None
        if ours.excluded_pixels is not None:
            excluded = np.zeros(tuple(self._meta.dataset_shape.sig), dtype=bool)
            excluded[tuple(ours.excluded_pixels)] = True
        # how pixels are patched is decided: the data have been corrected
        return CorrectionSet(ours.dark, ours.gain, excluded, allow_empty=True)


def _shape(shape: Any) -> Any:
    from libertem.common.shape import Shape as TheirShape

    return TheirShape(tuple(shape), sig_dims=shape.sig_dims)


def _slice(found: Any) -> Any:
    from libertem.common.slice import Slice as TheirSlice

    return TheirSlice(origin=tuple(found.origin), shape=_shape(found.shape))


TILE_DEPTH, TILE_BYTES = 32, 1 << 20
"""Depth in frames and size in bytes of the converted tiles that LiberTEM makes by default."""

VIEW_BYTES = 64 << 20
"""Size in bytes of a tile that is not converted; LiberTEM then gives whole partitions.

With smaller tiles, `CoMUDF` and `ApplyMasksUDF` take up to 1.2 times as long; with larger ones,
the temporary arrays of `StdDevUDF` take as long as they do there.
"""


class _Adapted:
    """The methods that stand between a class of LiberTEM and ours."""

    _merges_on_host = True
    _kwargs: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # `__init__` of a UDF may ask whether a parameter is aux data, as `ApplyMasksUDF` does
        super().__init__(
            *map(_their_parameter, args), **{k: _their_parameter(v) for k, v in kwargs.items()}
        )
        own = {name: own_parameter(value) for name, value in self._kwargs.items()}
        UDF.__init__(self, **own)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remake, (type(self).__bases__[1], self._kwargs))

    @property
    def meta(self) -> LiberTEMMeta:
        """Facts about the dataset and the current data, in LiberTEM's types."""
        try:
            found: LiberTEMMeta = self.__dict__["meta"]
        except KeyError:
            raise AttributeError("meta") from None
        return found

    @meta.setter
    def meta(self, meta: Any) -> None:
        takes_partitions = not (hasattr(self, "process_tile") or hasattr(self, "process_frame"))
        self.__dict__["meta"] = LiberTEMMeta(meta, takes_partitions)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the result buffers."""
        declared = super().get_result_buffers()  # type: ignore[misc]
        return {name: _buffer(value) for name, value in declared.items()}

    def get_method(self) -> UDFMethod:
        """Return the method that processes the data."""
        method = super().get_method()  # type: ignore[misc]
        # the plan refuses what is no member of an enum
        return UDFMethod(method.value) if isinstance(method, enum.Enum) else method

    def get_tiling_preferences(self) -> Mapping[str, Any]:
        """Return the size of the tiles, like those that LiberTEM makes.

        A converted tile has parts of frames and is small, so that it and what is computed from it
        stay in the cache: with our larger tiles, `StdDevUDF` takes twice as long. A tile that is
        not converted has full frames, because many UDFs flatten the frames, which is then no copy.
        """
        asked = super().get_tiling_preferences()  # type: ignore[misc]
        if self.get_method() is not UDFMethod.TILE:
            return {}
        # LiberTEM has members of enums for "the default" and "as it fits"
        chosen = {k: v for k, v in asked.items() if not isinstance(v, enum.Enum)}
        size = chosen.get("total_size", np.inf)
        ours = self.meta._meta
        if ours.input_dtype == ours.dataset_dtype and ours.corrections is None:
            return {"total_size": size, "view_size": VIEW_BYTES}
        # a depth is the least one there
        least = chosen.get("depth", TILE_DEPTH)
        return {"total_size": min(size, TILE_BYTES), "least_depth": least}


def adapted_class(cls: type) -> type[UDF]:
    """Return the class that is made of a class of LiberTEM."""
    from libertem.udf import base

    theirs = set(base.UDF.__mro__)
    inherited = {}
    for ours in reversed(UDF.__mro__[:-1]):
        for name, value in vars(ours).items():
            owner = next((each for each in cls.__mro__ if name in vars(each)), None)
            if owner in theirs and not name.startswith("__") and name not in vars(_Adapted):
                inherited[name] = value
    return _made(cls, frozenset(inherited.items()))


@functools.lru_cache(256)
def _made(cls: Any, inherited: frozenset[tuple[str, Any]]) -> type[UDF]:
    """Return the class; it is the same until somebody changes the class of LiberTEM."""
    body = dict(inherited) | {
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        # there, the frames of each tile and partition are a range
        "contiguous_nav": hasattr(cls, "process_tile") or hasattr(cls, "process_partition"),
    }
    for method in ("process_tile", "process_frame", "process_partition"):
        if hasattr(cls, method):
            body[method] = _with_contiguous_data(getattr(cls, method))
    if hasattr(cls, "merge_all"):
        # There, only one executor calls it, once with all partial results; others call `merge`.
        if "merge" in body:
            body["split_every"] = False
        else:
            body["merge_all"] = property(_not_used)
    made: type[UDF] = type(cls)(cls.__name__, (_Adapted, cls, UDF), body)
    return made


def _with_contiguous_data(method: Any) -> Any:
    """Return a method that gets data in C order: code for LiberTEM makes flat views of tiles."""

    @functools.wraps(method)
    def process(self: Any, data: Any) -> None:
        if isinstance(data, np.ndarray) and not data.flags.c_contiguous:
            data = locked(np.ascontiguousarray(data))
        method(self, data)

    return process


def _not_used(_: Any) -> Any:
    """Hide a method."""
    raise AttributeError("merge_all: a UDF of LiberTEM that has both is merged by `merge`")


def _remake(cls: type, kwargs: dict[str, Any]) -> UDF:
    """Create an adapted UDF from its parameters, when pickle loads it."""
    return adapted_class(cls)(**kwargs)


def own_parameter(value: Any) -> Any:
    """Return a parameter, with aux data of LiberTEM as ours."""
    from libertem.common.buffers import AuxBufferWrapper

    if not isinstance(value, AuxBufferWrapper):
        return value
    if hasattr(value, "_udfdask"):
        return value._udfdask
    return UDF.aux_data(value._data, value.kind, value.extra_shape, value.dtype)


def _their_parameter(value: Any) -> Any:
    """Return a parameter, with our aux data as LiberTEM's, which remember ours."""
    if not isinstance(value, AuxData):
        return value
    from libertem.common.buffers import AuxBufferWrapper

    wrapped = AuxBufferWrapper(value.kind, value.extra_shape, value.dtype)
    wrapped._data = value.data
    wrapped._udfdask = value
    return wrapped


def _buffer(value: Any) -> BufferSpec:
    """Return a declaration of LiberTEM as ours."""
    if isinstance(value, BufferSpec):
        return value
    return declare(value.kind, value.extra_shape, value.dtype, value.where, value.use, None)
