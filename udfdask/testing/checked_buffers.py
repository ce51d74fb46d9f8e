"""Buffers that raise if an assigned value is lost, for example because it wraps around."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.testing.assertions import UDFCheckError


class CheckedBuffer(np.ndarray):
    """An array that raises if an assigned value is lost.

    Rounding to another precision of a floating dtype is allowed. Lost are: a number that wraps
    around, a fraction that is cut off, NaN in an integer, a finite number that becomes infinite, an
    imaginary part, and the end of a string. Values that compiled code writes are not checked.
    """

    buffer_name: str

    def __array_finalize__(self, source: Any) -> None:
        self.buffer_name = getattr(source, "buffer_name", "")

    def __setitem__(self, index: Any, value: Any) -> None:
        plain, value = _plain(self), _plain(value)
        plain[index] = value
        check_kept(self.buffer_name, value, plain[index])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute on plain arrays; sums, differences and products of integers must not wrap."""
        out = kwargs.get("out", ())
        given = [np.asarray(_plain(x)) for x in inputs]
        exact = None
        can_wrap = ufunc in (np.add, np.subtract, np.multiply) and method == "__call__"
        if can_wrap and all(x.dtype.kind in "iu" for x in given):
            exact = ufunc(*(x.astype(object) for x in given))
        if out:
            kwargs["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        if exact is not None:
            name = next(x.buffer_name for x in (*out, *inputs) if isinstance(x, CheckedBuffer))
            check_kept(name, exact, result)
        return out[0] if len(out) == 1 else result


def checked(name: str, array: AnyArray) -> AnyArray:
    """Return a view of a buffer that raises if an assigned value is lost."""
    view = array.view(CheckedBuffer)
    view.buffer_name = name
    return view


def _plain(value: Any) -> Any:
    """Return a checked buffer as a plain array, and any other value unchanged."""
    return value.view(np.ndarray) if isinstance(value, CheckedBuffer) else value


def check_kept(name: str, value: Any, stored: Any) -> None:
    """Raise if `stored`, in the buffer of this name, is not what was assigned.

    A boolean buffer keeps truth values on purpose, and objects are stored unchanged.
    """
    try:
        assigned, kept = np.broadcast_arrays(value, stored)
    except ValueError:  # nested lists of objects
        return
    kinds = assigned.dtype.kind + kept.dtype.kind
    with np.errstate(all="ignore"):
        if (kinds[1] in "iu" and kinds[0] in "iufcO") or kinds in ("SS", "UU"):
            lost = np.asarray(assigned != kept, dtype=bool)
        elif kinds in ("cf", "ff", "fc", "cc"):
            lost = ~np.isfinite(kept) & np.isfinite(assigned)
            lost |= (kinds == "cf") & (assigned.imag != 0)
        else:
            return
    if lost.any():
        raise UDFCheckError(
            f"buffer {name!r} of dtype {kept.dtype} does not hold the assigned value: "
            f"{assigned[lost].flat[0]} becomes {kept[lost].flat[0]}. Declare a dtype that holds "
            "it, or convert on purpose, as with np.rint(...).astype(...) or .real"
        )
