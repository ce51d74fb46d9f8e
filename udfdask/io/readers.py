"""The readers of files that describe their contents, and which of them opens a file.

Other packages add readers through the entry point group ``udfdask.readers``: each entry is a
`Reader`. Modules that read a format are imported when a file of it is opened.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from udfdask.errors import ArgumentValueError, FileFormatError, UDFError, UDFWarning
from udfdask.io.file_identity import COPY_AGAIN, reading
from udfdask.io.numpy_file import MAGIC
from udfdask.io.opened_file import OpenedFile

GROUP = "udfdask.readers"
"""Group of the entry points by which other packages add readers."""

HDF5 = b"\x89HDF\r\n\x1a\n"

_BEGIN = 512
"""Number of bytes at the beginning of a file that readers see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A format of files, and how to open them.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask import Axis
    >>> from udfdask.io import OpenedFile, Reader
    >>> def open_zeros(path, *, dataset, sig_dims, chunks):
    ...     array = da.zeros((2, 8, 8))
    ...     axes = tuple(Axis(name=name) for name in ("t", "y", "x"))
    ...     return OpenedFile(array=array, sig_dims=2, reader="zeros", title=path.stem, axes=axes)
    >>> reader = Reader(
    ...     name="zeros", matches=lambda path, begin: path.suffix == ".zeros", open=open_zeros
    ... )
    """

    name: str
    """The format, in words."""
    matches: Callable[[Path, bytes], bool]
    """Whether it opens a file or folder, by its path and its first 512 bytes, which are empty for a
    folder. It may open the file, but the first bytes should be enough to exclude other formats."""
    open: Callable[..., OpenedFile]
    """Open a file lazily: called as ``open(path, dataset=, sig_dims=, chunks=)`` with an absolute
    path, possibly a symbolic link, and the user's arguments of `open_file`, which are None if they
    are not given."""
    has_datasets: bool = True
    """Whether a file can have several datasets; otherwise `open` has no argument `dataset`."""


def open_described(
    path: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open a file or folder of a format that describes its contents."""
    file = path.resolve()
    begin = b"" if file.is_dir() else first_bytes(file)
    readers = (*_BY_BEGIN, *added_readers(), *_BY_CONTENTS)
    reader = next(reader for reader in readers if reader.matches(file, begin))
    how: dict[str, Any] = {"sig_dims": sig_dims, "chunks": chunks}
    if reader.has_datasets:
        how["dataset"] = dataset
    elif dataset is not None:
        raise ArgumentValueError(
            f"dataset={dataset!r}: the {reader.name} file {path.name} holds one array and no "
            "datasets: leave out dataset"
        )
    opened = reader.open(path, **how)
    if not isinstance(opened, OpenedFile):
        raise UDFError(
            f"the reader {reader.name!r} must return a udfdask.io.OpenedFile, not "
            f"{type(opened).__name__}"
        )
    return opened


def first_bytes(file: Path) -> bytes:
    """Return the first bytes of a file, which identify its format; raise if it is empty."""
    with reading(file, "a file"), file.open("rb", buffering=0) as stream:
        begin = stream.read(_BEGIN)
    if not begin:
        raise FileFormatError(f"{file} is empty (0 bytes). {COPY_AGAIN}")
    return begin


@cache
def added_readers() -> tuple[Reader, ...]:
    """Return the readers of other packages, by the names of their entry points."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return tuple(reader for entry in found if (reader := _loaded(entry)) is not None)


def _loaded(entry: EntryPoint) -> Reader | None:
    """Return the reader of an entry point; warn and return None if it cannot be loaded."""
    why: object = "it is no udfdask.io.Reader"
    try:
        reader = entry.load()
    except Exception as error:  # noqa: BLE001  # other packages fail in any way
        why = error
    else:
        if isinstance(reader, Reader):
            return reader
    warnings.warn(
        f"the reader {entry.name!r} ({entry.value}) is left out: {why}", UDFWarning, stacklevel=2
    )
    return None


def _is_plain_hdf5(path: Path, begin: bytes) -> bool:
    """Return whether a file is of HDF5, and not of a format that only HyperSpy knows.

    It may begin with a block of other data, as MATLAB writes it.
    """
    if not begin.startswith(HDF5):
        try:
            from h5py import is_hdf5
        except ImportError:
            return False
        if not (path.is_file() and is_hdf5(path)):
            return False
    from udfdask.io.hdf5 import hyperspy_format

    return hyperspy_format(path) is None


def _opener(name: str, *, follow: bool = True) -> Callable[..., OpenedFile]:
    """Return the function `name`, ``module:function`` of this room, imported when it is called.

    Unless `follow`, it gets a symbolic link and not the file behind it.
    """
    module, _, function = name.partition(":")

    def opened(path: Path, **how: Any) -> OpenedFile:
        made: OpenedFile = getattr(import_module(f"udfdask.io.{module}"), function)(
            path.resolve() if follow else path, **how
        )
        return made

    return opened


# Wrong suffixes are common, so the first bytes count more.
_BY_BEGIN = (
    Reader(
        name="zarr",
        # folders of .zspy are HyperSpy's own
        matches=lambda path, _: path.is_dir() and path.suffix.lower() != ".zspy",
        open=_opener("zarr_file:open_zarr"),
    ),
    Reader(
        name="NumPy",
        matches=lambda path, begin: begin.startswith(MAGIC) or path.suffix.lower() == ".npy",
        open=_opener("numpy_file:open_npy"),
        has_datasets=False,
    ),
    Reader(
        name="raw CSR",
        matches=lambda path, _: path.suffix.lower() == ".toml",
        open=_opener("raw_csr:open_csr_toml"),
        has_datasets=False,
    ),
)

_BY_CONTENTS = (
    # HDF5 looks for other files also next to the link
    Reader(name="HDF5", matches=_is_plain_hdf5, open=_opener("hdf5:open_hdf5", follow=False)),
    Reader(
        name="HyperSpy",
        matches=lambda _path, _begin: True,
        open=_opener("hyperspy_file:open_with_hyperspy"),
    ),
)
