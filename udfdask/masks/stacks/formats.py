"""Names and checks of the matrix formats of masks."""

from __future__ import annotations

from typing import Any, Literal, get_args

from udfdask.errors import ArgumentValueError

Sparse = Literal[
    "scipy.sparse",
    "scipy.sparse.csr",
    "scipy.sparse.csc",
    "sparse.pydata",
    "sparse.pydata.GCXS",
]
"""LiberTEM's names of sparse formats: ``scipy.sparse`` is CSR, ``sparse.pydata`` is COO."""

SPARSE: tuple[Sparse, ...] = get_args(Sparse)


def sparse_format(name: str, value: Any) -> Sparse:
    """Return the name of a sparse format, checked."""
    if value not in SPARSE:
        raise ArgumentValueError(
            f"{name} must be one of {', '.join(map(repr, SPARSE))}, not {value!r}"
        )
    known: Sparse = value
    return known


def choice(name: str, value: Any, default: Sparse) -> Sparse | Literal[False] | None:
    """Return a choice, checked: a format, False for dense, None for no choice."""
    if value is None:
        return None
    if isinstance(value, str) and value in SPARSE:
        return sparse_format(name, value)
    if isinstance(value, bool):
        return default if value else False
    raise ArgumentValueError(
        f"{name} must be None, True, False or one of {', '.join(map(repr, SPARSE))}, not {value!r}"
    )


def numpy_backend(value: Any) -> None:
    """Raise unless the backend is NumPy."""
    if value is None or value == "numpy":
        return
    if value == "cupy":
        raise ArgumentValueError(
            "backend='cupy' is not supported: leave it out and copy the matrix to the device with "
            "cupy.asarray"
        )
    raise ArgumentValueError(
        f"backend must be None or 'numpy', not {value!r}; for sparse matrices use sparse_backend"
    )
