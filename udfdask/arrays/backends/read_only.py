"""Views of arrays that cannot be written to."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from udfdask.types import AnyArray


def locked(array: AnyArray) -> AnyArray:
    """Return a read-only view of an array; of CuPy, which has none, the array itself."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def locked_sparse(array: Any) -> Any:
    """Return a sparse array of the same values and places, none of which can be written to.

    What is replaced in it as a whole, as SciPy's `resize` does, stays as it was in the original;
    so does sparse.DOK, which is copied.
    """
    twin = copy.copy(array)  # shallow
    for name in ("data", "indices", "indptr", "coords"):
        part = vars(twin).get(name)
        if isinstance(part, tuple):
            setattr(twin, name, tuple(locked(p) for p in part))
        elif isinstance(part, dict):  # of sparse.DOK, which knows no other mapping
            setattr(twin, name, dict(part))
        elif part is not None:
            setattr(twin, name, locked(part))
    return twin
