"""What the chunks of a dask array can be made of, and how to make them that; works on workers."""

import importlib.util
import math

import numpy as np

from udfdask import UDF
from udfdask.backends.table import backend_named, to_backend

READ_ONLY = "read-only"
STAND_IN = "stand-in"
"""CuPy's, with NumPy standing in for it."""
ANY_SHAPE = ("numpy", READ_ONLY, UDF.BACKEND_SPARSE_COO, UDF.BACKEND_SPARSE_GCXS)
MATRICES = tuple(sorted(UDF.CPU_BACKENDS & UDF.D2_BACKENDS, reverse=True))
ON_DEVICE = (UDF.BACKEND_CUPY, *sorted(UDF.CUDA_BACKENDS & UDF.D2_BACKENDS, reverse=True))
ON_HOST = (*ANY_SHAPE, *MATRICES)


def why_no_device():
    """Why nothing can run on a CUDA device here, or None."""
    if importlib.util.find_spec("cupy") is None:
        return "cupy is not installed"
    import cupy

    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"there is no CUDA device: {error}"
    return None if found else "there is no CUDA device"


def can_hold(backend, array, sig_dims):
    """Whether a dask array can have such chunks; what a run refuses has none but NumPy ones."""
    dtype = array.dtype
    if (
        backend == "numpy"
        or np.isnan(array.shape).any()
        or sig_dims not in range(1, array.ndim + 1)
    ):
        return backend == "numpy"
    if backend == READ_ONLY:
        return True
    if dtype.kind not in "biufc" or not dtype.isnative or dtype.char in "egG":
        return False
    return backend not in UDF.D2_BACKENDS or (array.ndim, sig_dims) == (2, 1)


def block_in(block, backend, sig_dims):
    if backend == READ_ONLY:
        view = np.asarray(block).view()
        view.flags.writeable = False
        return view
    if backend == UDF.BACKEND_SPARSE_GCXS:
        return gcxs(np.asarray(block), block.ndim - sig_dims)
    name = UDF.BACKEND_CUPY if backend == STAND_IN else backend
    return to_backend(np.asarray(block), backend_named(name), block.shape)


def gcxs(block, nav_dims):
    """A block as `from_raw_csr` gives it, without what `sparse` would compile for that."""
    import sparse
    from scipy.sparse import csr_array

    if nav_dims == 0:
        return sparse.GCXS.from_numpy(block)
    flat = block.reshape((math.prod(block.shape[:nav_dims]), math.prod(block.shape[nav_dims:])))
    rows = csr_array(flat)
    entries = (rows.data, rows.indices, rows.indptr)
    return sparse.GCXS(entries, shape=block.shape, compressed_axes=tuple(range(nav_dims)))


def chunks_in(array, backend, sig_dims):
    if backend == "numpy":
        return array
    how = {"backend": backend, "sig_dims": sig_dims}
    meta = block_in(np.empty((0,) * array.ndim, array.dtype), **how)
    return array.map_blocks(block_in, **how, meta=meta)
