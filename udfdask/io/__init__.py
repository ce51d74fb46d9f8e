"""Files in, files out: `open_file` and its kin read lazily, `write_zarr`, `write_npz` store."""

from udfdask.io.chunk_advice import ChunkAdvice, suggest_chunks
from udfdask.io.npz_file import write_npz
from udfdask.io.opened import OpenedFile
from udfdask.io.opening import open_file
from udfdask.io.raw import from_raw
from udfdask.io.raw_csr import from_raw_csr
from udfdask.io.variables import Variable, result_variables
from udfdask.io.zarr_store import write_zarr
from udfdask.placement import on_workers

__all__ = [
    "ChunkAdvice",
    "OpenedFile",
    "Variable",
    "from_raw",
    "from_raw_csr",
    "on_workers",
    "open_file",
    "result_variables",
    "suggest_chunks",
    "write_npz",
    "write_zarr",
]
