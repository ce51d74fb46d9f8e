"""Open files as lazy arrays (`open_file`, `from_raw`), and write results to files."""

from udfdask.io.chunk_advice import ChunkAdvice, suggest_chunks
from udfdask.io.named_variables import Variable, result_variables
from udfdask.io.npz_file import write_npz
from udfdask.io.open_file import open_file
from udfdask.io.open_results import open_results
from udfdask.io.opened_file import OpenedFile
from udfdask.io.raw import from_raw
from udfdask.io.raw_csr import from_raw_csr
from udfdask.io.readers import Reader
from udfdask.io.save_results import save_results
from udfdask.io.sync_offset import with_sync_offset
from udfdask.io.write_zarr import write_zarr
from udfdask.scheduling.workers.block_placement import on_workers

__all__ = [
    "ChunkAdvice",
    "OpenedFile",
    "Reader",
    "Variable",
    "from_raw",
    "from_raw_csr",
    "on_workers",
    "open_file",
    "open_results",
    "result_variables",
    "save_results",
    "suggest_chunks",
    "with_sync_offset",
    "write_npz",
    "write_zarr",
]


def __dir__() -> list[str]:
    return sorted(__all__)
