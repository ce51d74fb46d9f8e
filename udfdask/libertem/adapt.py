"""Make UDFs of LiberTEM's UDFs, without a change of their code.

The class that is made inherits from LiberTEM's class and from ours. It runs the user's methods, and
ours wherever LiberTEM's own base class has one: ours declares buffers, and knows the chunks.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from udfdask.errors import ArgumentTypeError
from udfdask.libertem.meta import LiberTEMMeta
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData, make_aux
from udfdask.udf.buffers import BufferSpec, declare


def adapt(udf: Any) -> Any:
    """Return a UDF, or a class of UDFs, that does what one of LiberTEM's does.

    Parameters
    ----------
    udf : libertem.udf.UDF, or a subclass of it
        The UDF.

    Returns
    -------
    UDF, or a subclass of it
        A UDF with the same parameters, for `run_udf` and all other functions.

    Raises
    ------
    ArgumentTypeError
        If `udf` is not a UDF of LiberTEM.
    """
    base = _libertem_base()
    if isinstance(udf, type) and issubclass(udf, base):
        return _adapted(udf)
    if not isinstance(udf, base):
        raise ArgumentTypeError(
            f"adapt takes a UDF of LiberTEM or a class of them, not {type(udf).__name__}"
        )
    return _adapted(type(udf))(**{name: _parameter(value) for name, value in udf._kwargs.items()})


def _libertem_base() -> type:
    from libertem.udf.base import UDF as LiberTEMUDF

    return LiberTEMUDF


@functools.cache
def _adapted(cls: type) -> type[UDF]:
    """Return the class for a class of LiberTEM."""
    if issubclass(cls, UDF):
        return cls
    theirs = set(_libertem_base().__mro__)
    body: dict[str, Any] = {}
    for ours in reversed(UDF.__mro__[:-1]):
        for name, value in vars(ours).items():
            if name.startswith("__") and name.endswith("__"):
                continue
            owner = next((base for base in cls.__mro__ if name in vars(base)), None)
            if owner in theirs:
                body[name] = value
    own = {name: value for name, value in vars(_Bridge).items() if not name.startswith("__")}
    own |= {name: vars(_Bridge)[name] for name in ("__init__", "__reduce__")}
    body |= own | {"__module__": cls.__module__, "__doc__": cls.__doc__, "_libertem_class": cls}
    made: type[UDF] = type(cls)(cls.__name__, (cls, UDF), body)
    made.contiguous_nav = True
    return made


class _Bridge:
    """The members of each class that is made."""

    _libertem_class: type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._libertem_class.__init__(self, *args, **kwargs)
        UDF.__init__(self, **self._kwargs)

    def __reduce__(self) -> Any:
        return (_remake, (self._libertem_class, self._kwargs))

    @property
    def meta(self) -> LiberTEMMeta:
        """Facts about the dataset, in LiberTEM's types."""
        found = self.__dict__.get("_meta")
        if found is None:
            raise AttributeError("meta")
        return found

    @meta.setter
    def meta(self, meta: Any) -> None:
        self.__dict__["_meta"] = meta if isinstance(meta, LiberTEMMeta) else LiberTEMMeta(meta)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the result buffers."""
        declared = self._libertem_class.get_result_buffers(self)
        return {name: _buffer(value) for name, value in declared.items()}

    def get_method(self) -> UDFMethod:
        """Return the method that processes the data."""
        method = self._libertem_class.get_method(self)
        return UDFMethod(getattr(method, "value", method))


def _remake(cls: type, kwargs: dict[str, Any]) -> UDF:
    return _adapted(cls)(**kwargs)


def _parameter(value: Any) -> Any:
    """Return aux data of LiberTEM as ours."""
    from libertem.common.buffers import AuxBufferWrapper

    if isinstance(value, AuxBufferWrapper):
        extra = tuple(value._extra_shape)
        return make_aux(value._data, value._kind, extra, value._dtype)
    return value


def _buffer(value: Any) -> BufferSpec:
    """Return a declaration of LiberTEM as ours."""
    if isinstance(value, BufferSpec):
        return value
    return declare(value.kind, tuple(value.extra_shape), value.dtype, value.where, value.use, None)
