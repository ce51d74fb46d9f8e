"""The files of instruments, as HyperSpy and RosettaSciIO read them."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.cache import OncePerProcess
from udfdask.errors import ArgumentValueError, FileFormatError, missing_package
from udfdask.graph.dask_internals import compute_here
from udfdask.io.check_length import check_after, check_before
from udfdask.io.damaged_files import COPY_AGAIN, check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.hdf5 import take_over
from udfdask.io.lazy_source import Source, choose_chunks, lazy_array
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, name_axes
from udfdask.writing.stores import METADATA

_BELONGING = {".mib": ".hdr", ".rpl": ".raw", ".emi": "_*.ser"}
"""What the names of other files that hold values or shapes have in place of a file's suffix."""

_ADVICE = f"{COPY_AGAIN}, together with the files that belong to it"

_loaded = OncePerProcess(4)
"""Signals of the last few files: some take seconds to load, even lazily."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSpyArray:
    """An array in a file that HyperSpy reads, loaded once in each process that slices it.

    The lazy arrays that HyperSpy makes are named after the path alone or at random, and hold open
    files, or none that a change could be seen of.
    """

    file: FileIdentity
    """The file, or a store's metadata, as it was when it was opened."""
    others: tuple[FileIdentity, ...]
    """The same of the files that belong to it."""
    path: str
    """Absolute path of the file or store."""
    number: int
    """Which of the signals in it."""
    shape: tuple[int, ...]
    """Shape of the whole array."""
    dtype: np.dtype[Any]
    """Type of the values."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`, as HyperSpy reads it."""
        with ExitStack() as stack:
            files = (self.file, *self.others)
            for file in files:
                stack.enter_context(file.unchanged())
            stack.enter_context(reading(self.path, "HyperSpy", part=f"at {index}"))
            signals = _loaded.get(files, lambda: _load_unchanged(Path(self.path), files))
            return compute_here(da.asarray(signals[self.number].data)[index])


def open_with_hyperspy(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Take a file and a signal's number or title in it, or None; return it opened."""
    format_name = _format_name(file)
    reader = f"HyperSpy ({format_name})"
    check_before(file)
    identity, others = _identities(file)
    signals = _load_unchanged(file, (identity, *others))
    number = _choose(signals, dataset, file=str(file))
    signal = signals[number]
    manager = signal.axes_manager
    # Without navigation axes data is an array of its own; with them it is lazy already.
    array = da.asarray(signal.data)
    check_values(file, array.shape, array.dtype)
    check_after(file, signal, array.shape)
    sig = choose_sig_dims(sig_dims, array.ndim, known=manager.signal_dimension)
    axes = [_axis(manager._axes[dim]) for dim in range(array.ndim)]
    wanted = choose_chunks(array.shape, array.dtype, sig, chunks)
    if len(signals) > 1:
        reader += f", signal {number}"
    title = signal.metadata.General.title or file.stem
    source: Source | None = take_over(array, identity)
    if source is None:
        source = HyperSpyArray(
            file=identity,
            others=others,
            path=str(file),
            number=number,
            shape=array.shape,
            dtype=array.dtype,
        )
        _loaded.get((identity, *others), lambda: signals)
    # HyperSpy's own chunks: it would read them whole for each of smaller ones.
    array = lazy_array(source, array.chunks, prefix="from-hyperspy")
    return OpenedFile(
        array=array if chunks is None else array.rechunk(wanted),
        sig_dims=sig,
        reader=reader,
        title=title,
        axes=name_axes(axes, sig),
    )


def _identities(file: Path) -> tuple[FileIdentity, tuple[FileIdentity, ...]]:
    """Take a file, or a store in a folder; return what it is now, and what belongs to it."""
    tail = _BELONGING.get(file.suffix.lower())
    others = sorted(file.parent.glob(glob.escape(file.stem) + tail)) if tail else []
    itself = next((file / name for name in METADATA if (file / name).is_file()), file)
    return FileIdentity.of(itself), tuple(map(FileIdentity.of, others))


def _format_name(file: Path) -> str:
    """Take a file; return the name of its format by its suffix, or raise if there is none."""
    try:
        from rsciio import IO_PLUGINS
    except ImportError as error:
        raise missing_package("hyperspy", purpose=f"reading {file.name}") from error
    suffix = file.suffix.lower().removeprefix(".")
    for plugin in IO_PLUGINS:
        if suffix and suffix in plugin["file_extensions"]:
            return str(plugin["name"])
    raise FileFormatError(
        f"nothing here reads {file}: its suffix {file.suffix!r} is none of .npy, .h5, .zarr "
        "and those of HyperSpy's formats. If it holds plain frames, pass nav_shape, sig_shape and "
        "dtype"
    )


def _load_unchanged(file: Path, identities: Sequence[FileIdentity]) -> list[Any]:
    """Take a file and what it and those that belong to it were; return its signals, or raise."""
    signals = _load(file, _format_name(file))
    for identity in identities:  # what changes in between must not be kept
        os.close(identity.open())
    return signals


def _load(file: Path, format_name: str) -> list[Any]:
    """Take a file and its format's name; return the lazy signals in it."""
    try:
        import hyperspy.api as hs
    except ImportError as error:
        raise missing_package("hyperspy", purpose=f"reading {file.name}") from error
    try:
        with _quiet("hyperspy.io"), reading(file, f"{format_name} by HyperSpy", advice=_ADVICE):
            # The signal type only chooses a class, often one of a package that is not installed.
            loaded = hs.load(file, lazy=True, signal_type="")
    except ImportError as error:
        raise ImportError(
            f"HyperSpy cannot read {file.name} without another package ({error}): "
            'pip install "rosettasciio[all]"',
            name=error.name,
        ) from error
    return loaded if isinstance(loaded, list) else [loaded]


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Take a logger's name; silence it for a while. What it says stands in our error, too."""
    logger = logging.getLogger(name)
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _choose(signals: Sequence[Any], dataset: str | int | None, *, file: str) -> int:
    """Take a file's signals and the number or title asked for, or None; return one's number."""
    if not signals:
        raise FileFormatError(f"HyperSpy finds no signal in {file}")
    numbers = range(len(signals))
    if dataset is None:
        found = [n for n in numbers if signals[n].axes_manager.navigation_dimension > 0]
        found = found or list(numbers)
    else:
        found = [n for n in numbers if signals[n].metadata.General.title == dataset]
        if not found and str(dataset).isdecimal():
            found = [n for n in numbers if n == int(dataset)]
    if len(found) == 1:
        return found[0]
    listing = ", ".join(
        f"{number} {s.metadata.General.title!r} {s.data.shape} {s.data.dtype}"
        for number, s in enumerate(signals)
    )
    if found:
        asked = "" if dataset is None else f" called {dataset!r}"
        raise FileFormatError(
            f"{file} holds several signals{asked}: pass dataset= as one of the numbers in {listing}"
        )
    raise ArgumentValueError(
        f"there is no signal {dataset!r} in {Path(file).name}: pass a number or title "
        f"out of {listing}"
    )


def _axis(axis: Any) -> Axis:
    """Take an axis of a signal; return its name, unit and scale, as far as they are known."""
    # HyperSpy marks what is unknown with an object of traits' own, neither None nor a text.
    name = axis.name if isinstance(axis.name, str) else ""
    unit = axis.units if isinstance(axis.units, str) and axis.units else None
    if not axis.is_uniform:
        return Axis(name=name)
    return Axis(name=name, unit=unit, scale=float(axis.scale), offset=float(axis.offset))
