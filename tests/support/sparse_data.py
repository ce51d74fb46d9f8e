"""Sparse chunks in every format, and fences around whatever would make them dense."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

FORMATS = ("GCXS", "COO", "DOK")
"""Formats that keep the shape of scan and frames, of the package `sparse`."""
MATRICES = ("csr", "csc", "coo")
"""SciPy's, which are matrices or arrays of one scan and one signal axis."""
MATRIX_FORMATS = tuple(f"{name}_{kind}" for name in MATRICES for kind in ("matrix", "array"))


def maker(form: str, n_nav: int) -> Callable[[np.ndarray], Any]:
    if form in MATRIX_FORMATS:
        import scipy.sparse

        return getattr(scipy.sparse, form)
    import sparse

    if form == "GCXS":
        axes = tuple(range(n_nav))
        return lambda block: sparse.GCXS.from_numpy(np.ascontiguousarray(block), axes)
    return lambda block: getattr(sparse, form).from_numpy(np.ascontiguousarray(block))


def sparse_chunks(data: np.ndarray, chunks: Any, form: str, n_nav: int) -> da.Array:
    make = maker(form, n_nav)
    meta = make(np.zeros((0,) * data.ndim, data.dtype))
    return da.from_array(data, chunks=chunks).map_blocks(make, dtype=data.dtype, meta=meta)


def sprinkled(data: np.ndarray, density: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kept = rng.random(data.shape) < density
    kept[rng.random(data.shape[:1]) < 0.2] = False
    return np.where(kept, data, np.zeros((), data.dtype)).astype(data.dtype)


def as_matrix(data: np.ndarray, n_nav: int) -> np.ndarray:
    return data.reshape(math.prod(data.shape[:n_nav]), math.prod(data.shape[n_nav:]))


class Densified(AssertionError):
    """Sparse data became dense."""


def forbid_dense(monkeypatch: Any) -> list[str]:
    """Let every way from sparse to dense raise; return a list of the conversions that are made."""
    import scipy.sparse
    import sparse
    import sparseconverter

    from udfdask.backends.sparse_rows import SparseRows

    def refuse(*_: Any, **__: Any) -> Any:
        raise Densified

    for cls in (sparse.SparseArray, sparse.COO, sparse.GCXS, sparse.DOK):
        for name in ("todense", "__array__", "maybe_densify"):
            monkeypatch.setattr(cls, name, refuse, raising=False)
    for form in MATRIX_FORMATS:
        for name in ("todense", "toarray", "__array__"):
            monkeypatch.setattr(getattr(scipy.sparse, form), name, refuse, raising=False)
    monkeypatch.setattr(SparseRows, "dense", refuse)
    convert, made = sparseconverter.for_backend, []

    def counted(array: Any, backend: str, *more: Any) -> Any:
        if backend in sparseconverter.DENSE_BACKENDS:
            raise Densified
        made.append(backend)
        return convert(array, backend, *more)

    monkeypatch.setattr(sparseconverter, "for_backend", counted)
    return made
