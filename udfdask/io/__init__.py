"""Open files as lazy arrays (`open_file`, `from_raw`)."""

from udfdask.io.chunk_advice import ChunkAdvice, suggest_chunks
from udfdask.io.open_file import open_file
from udfdask.io.opened_file import OpenedFile
from udfdask.io.raw import from_raw
from udfdask.io.raw_csr import from_raw_csr
from udfdask.io.readers import Reader
from udfdask.io.sync_offset import with_sync_offset
from udfdask.scheduling.workers.block_placement import on_workers

__all__ = [
    "ChunkAdvice",
    "OpenedFile",
    "Reader",
    "from_raw",
    "from_raw_csr",
    "on_workers",
    "open_file",
    "suggest_chunks",
    "with_sync_offset",
]


def __dir__() -> list[str]:
    return sorted(__all__)
