"""Make UDFs of LiberTEM's, unchanged. Only their owners import LiberTEM."""

from __future__ import annotations

import sys
from typing import Any

from udfdask.errors import ArgumentTypeError
from udfdask.udf import UDF


def adapt(udf: Any) -> Any:
    """Make a UDF that does what a UDF of LiberTEM does.

    `run_udf`, the accessors and all other functions that take UDFs call this function if they get a
    UDF of LiberTEM. Call it to look at the UDF that they run, or to test it with `check_udf`.

    Parameters
    ----------
    udf : libertem.udf.UDF, or a subclass of it
        The UDF; it is not changed.

    Returns
    -------
    UDF, or a subclass of it
        A UDF with the same name, parameters and results.

    Raises
    ------
    ArgumentTypeError
        If `udf` is not a UDF of LiberTEM.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from libertem.udf import UDF
    >>> class MaxUDF(UDF):
    ...     def get_result_buffers(self):
    ...         return {"peak": self.buffer(kind="nav", dtype="float32")}
    ...     def process_frame(self, frame):
    ...         self.results.peak[:] = frame.max()
    >>> x = da.arange(2 * 3 * 4 * 4, chunks=32).reshape(2, 3, 4, 4)
    >>> ud.run_udf(x, MaxUDF())["peak"].compute()
    array([[15., 31., 47.],
           [63., 79., 95.]], dtype=float32)
    >>> from udfdask.libertem import adapt
    >>> isinstance(adapt(MaxUDF()), ud.UDF)
    True
    """
    if isinstance(udf, type) and issubclass(udf, _their_base()):
        from udfdask.udf.adapted_class import adapted_class

        return adapted_class(udf)
    if udf_name(udf) is None:
        raise ArgumentTypeError(
            f"adapt takes a UDF of LiberTEM, or a class of them, not {type(udf).__name__}"
        )
    return as_own(udf)


def as_own(udf: Any) -> Any:
    """Return a UDF of LiberTEM as ours, and every other value as it is."""
    if isinstance(udf, UDF) or not isinstance(udf, _their_base()):
        return udf
    from udfdask.udf.adapted_class import adapted_class, own_parameter

    record = sys.modules.get("libertem.udf.record")
    if record is not None and isinstance(udf, record.RecordUDF):
        raise ArgumentTypeError(
            f"{type(udf).__name__} of LiberTEM makes its file in preprocess of the user's own "
            "instance, which never runs here: use udfdask.udfs.RecordUDF, or array.to_zarr"
        )
    kwargs = {name: own_parameter(value) for name, value in udf._kwargs.items()}
    return adapted_class(type(udf))(**kwargs)


def udf_name(value: Any) -> str | None:
    """Return the name of the class of a UDF, or of a class of UDFs; None for other values."""
    cls = value if isinstance(value, type) else type(value)
    return cls.__name__ if issubclass(cls, (UDF, *_their_base())) else None


def _their_base() -> Any:
    """Return LiberTEM's `UDF`, or nothing if LiberTEM is not loaded."""
    module = sys.modules.get("libertem.udf.base")
    return () if module is None else (module.UDF,)
