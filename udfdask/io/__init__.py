"""Files in, files out: `open_file`, `from_raw` read lazily, `write_zarr`, `write_npz` store."""

from udfdask.io.npz_file import write_npz
from udfdask.io.opened import OpenedFile
from udfdask.io.opening import open_file
from udfdask.io.raw import from_raw
from udfdask.io.variables import Variable, result_variables
from udfdask.io.zarr_store import write_zarr

__all__ = [
    "OpenedFile",
    "Variable",
    "from_raw",
    "open_file",
    "result_variables",
    "write_npz",
    "write_zarr",
]
