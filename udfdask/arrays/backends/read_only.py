"""Make read-only views of arrays."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from udfdask.types import AnyArray


def locked(array: AnyArray) -> AnyArray:
    """Return a read-only view of an array; CuPy has no such views, its arrays are returned."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def locked_sparse(array: Any) -> Any:
    """Return a sparse array with the same values and indices, all read-only.

    Methods that replace these arrays, such as SciPy's `resize`, only change the returned array.
    """
    result = copy.copy(array)  # shallow
    for name in ("data", "indices", "indptr", "coords"):
        part = vars(result).get(name)
        if isinstance(part, tuple):
            setattr(result, name, tuple(locked(p) for p in part))
        elif isinstance(part, dict):  # sparse.DOK accepts no read-only mapping: copy it
            setattr(result, name, dict(part))
        elif part is not None:
            setattr(result, name, locked(part))
    return result
