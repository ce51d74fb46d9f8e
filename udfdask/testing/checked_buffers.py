"""Provide buffers that raise if an assigned value is lost, for example because it wraps around."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.testing.failures import UDFCheckError
from udfdask.types import AnyArray

REMEDY = {
    "c": "declare a complex dtype, or take .real on purpose",
    "f": "declare a floating dtype, or round on purpose, as with np.rint(...).astype(...)",
}
"""Remedies for the message, by the kind of dtype of the assigned values."""

EXACT = frozenset({np.add, np.subtract, np.multiply})
"""Functions on integers that are also computed exactly, with Python's integers, to compare."""


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
        plain = self.view(np.ndarray)
        value = _plain(value)
        plain[index] = value
        check_kept(self.buffer_name, value, plain[index])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute on plain arrays; sums, differences and products of integers must not wrap."""
        out = kwargs.pop("out", ())
        given = [np.asarray(_plain(x)) for x in inputs]
        exact = None
        if ufunc in EXACT and method == "__call__" and all(x.dtype.kind in "iu" for x in given):
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
        assigned = np.asarray(value)
    except ValueError:  # nested lists of objects
        return
    assigned, kept = np.broadcast_arrays(assigned, stored)
    kinds = assigned.dtype.kind + kept.dtype.kind
    with np.errstate(all="ignore"):
        if (kinds[1] in "iu" and kinds[0] in "iufcO") or kinds in ("SS", "UU"):
            survives = np.asarray(assigned == kept, dtype=bool)
        elif kinds in ("cf", "ff", "fc", "cc"):
            survives = np.isfinite(kept) | ~np.isfinite(assigned)
            if kinds == "cf":
                survives &= assigned.imag == 0
        else:
            return
    if not survives.all():
        before, after = assigned[~survives].flat[0], kept[~survives].flat[0]
        remedy = REMEDY.get(kinds[0], f"declare a wider dtype than {kept.dtype}")
        raise UDFCheckError(
            f"buffer {name!r} of dtype {kept.dtype} does not hold the assigned value: {before} "
            f"becomes {after}. {remedy[0].upper()}{remedy[1:]}"
        )
