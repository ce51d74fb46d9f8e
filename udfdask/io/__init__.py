"""Open files as lazy arrays (`open_file`, `from_raw`)."""

from typing import TYPE_CHECKING

from udfdask.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from udfdask.io.opened_file import OpenedFile
    from udfdask.io.opening import Reader, open_file
    from udfdask.io.raw import from_raw
    from udfdask.io.raw_csr import from_raw_csr
    from udfdask.io.sync_offset import with_sync_offset

__all__ = ["OpenedFile", "Reader", "from_raw", "from_raw_csr", "open_file", "with_sync_offset"]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "opened_file": "OpenedFile",
            "opening": "Reader open_file",
            "raw": "from_raw",
            "raw_csr": "from_raw_csr",
            "sync_offset": "with_sync_offset",
        },
    )
