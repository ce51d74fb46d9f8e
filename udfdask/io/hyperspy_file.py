"""Open files of instruments with HyperSpy and RosettaSciIO."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da

from udfdask.errors import ArgumentValueError, FileFormatError, missing_package
from udfdask.graph.dask_internals.running import compute_here
from udfdask.io.check_length import check_after, check_before
from udfdask.io.damaged_files import COPY_AGAIN, check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.hdf5 import hyperspy_format, take_over
from udfdask.io.hyperspy_axes import read_axis, read_unit
from udfdask.io.lazy_source import FileArray, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.mib_frames import mapped_frames
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array
from udfdask.once_per_process import OncePerProcess
from udfdask.writing.stores import METADATA

_OTHER_FILES = {".mib": ".hdr", ".rpl": ".raw", ".emi": "_*.ser"}
"""Endings of the names of other files that contain values or shapes, by the file's suffix."""

_ADVICE = f"{COPY_AGAIN}, together with the files that belong to it"

_loaded = OncePerProcess(4)
"""Signals of the last 4 files: to load a file can take seconds, even lazily."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSpyArray(FileArray):
    """An array in a file that HyperSpy reads; each process loads the file once.

    HyperSpy's own lazy arrays are not used, because their names depend only on the path or are
    random, and tasks could not notice a change of the file.
    """

    others: tuple[FileIdentity, ...]
    """Other files that contain a part of the recording."""
    path: str
    """Absolute path of the file or store."""
    number: int
    """Number of the signal in the file."""
    mapped: MappedArray | None = None
    """The same values as a part of the file, which tasks map; None for other files."""

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`, as HyperSpy reads it."""
        if self.mapped is not None:
            for other in self.others:
                os.close(other.open())  # raises if the file has changed
            return self.mapped[index]
        with ExitStack() as stack:
            files = (self.file, *self.others)
            for file in files:
                stack.enter_context(file.unchanged())
            stack.enter_context(reading(self.path, "HyperSpy", part=f"at {index}"))
            signals = _loaded.get(files, lambda: _load(Path(self.path), files))
            return compute_here(da.asarray(signals[self.number].data)[index])


def open_with_hyperspy(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open a signal by its number or title, by default the one with navigation axes."""
    reader = f"HyperSpy ({_format_name(file)})"
    check_before(file)
    identity, others = _identities(file)
    signals = _load(file, (identity, *others))
    number = _choose(signals, dataset, file=str(file))
    signal = signals[number]
    manager = signal.axes_manager
    # A signal without navigation axes is not lazy: its data are a NumPy array.
    array = da.asarray(signal.data)
    check_values(file, array.shape, array.dtype)
    check_after(file, signal, array.shape)
    sig = choose_sig_dims(sig_dims, array.ndim, known=manager.signal_dimension)
    # A signal whose axes were declared by `axis.navigate` has its navigation axes anywhere.
    ordered = (*manager.navigation_axes[::-1], *manager.signal_axes[::-1])
    order = tuple(axis.index_in_array for axis in ordered)
    is_moved = order != tuple(range(array.ndim))
    grid = choose_chunks(array, sig, None if is_moved else chunks)
    if len(signals) > 1:
        reader += f", signal {number}"
    title = signal.metadata.General.title or file.stem
    source: FileArray | None = take_over(array, identity)
    mapped = None if source else mapped_frames(array, file, identity)
    if source is None:
        source = HyperSpyArray(
            file=identity,
            others=others,
            path=str(file),
            number=number,
            shape=array.shape,
            dtype=array.dtype,
            mapped=mapped,
        )
        _loaded.get((identity, *others), lambda: signals)
    if mapped is not None:
        array = lazy_array(source, grid, prefix="from-hyperspy")
    else:
        # Tasks read HyperSpy's own chunks: it would read a complete one for each part of it.
        array = lazy_array(source, array.chunks, prefix="from-hyperspy")
        array = array if chunks is None or is_moved else array.rechunk(grid)
    if is_moved:
        array = array.transpose(order)
        array = array if chunks is None else array.rechunk(choose_chunks(array, sig, chunks))
    axes = [read_axis(axis) for axis in ordered]
    return opened_array(array, sig, reader=reader, title=title, axes=axes, unit=read_unit(signal))


def _identities(file: Path) -> tuple[FileIdentity, tuple[FileIdentity, ...]]:
    """Return the identity of a file or store, and those of other files of the recording."""
    ending = _OTHER_FILES.get(file.suffix.lower())
    others = sorted(file.parent.glob(glob.escape(file.stem) + ending)) if ending else []
    main = next((file / name for name in METADATA if (file / name).is_file()), file)
    return FileIdentity.of(main), tuple(map(FileIdentity.of, others))


def _format_name(file: Path) -> str:
    """Return the name of the format that HyperSpy knows for the contents or suffix of a file."""
    known = hyperspy_format(file)
    if known is not None:
        return known
    try:
        from rsciio import IO_PLUGINS
    except ImportError as error:
        raise missing_package("hyperspy", purpose=f"reading {file.name}") from error
    suffix = file.suffix.lower().removeprefix(".")
    for plugin in IO_PLUGINS:
        if suffix and suffix in plugin["file_extensions"]:
            return str(plugin["name"])
    raise FileFormatError(
        f"no reader knows {file}: its suffix {file.suffix!r} is not .npy, .h5, .zarr or a suffix "
        "of HyperSpy's formats. If it contains only frames, pass nav_shape, sig_shape and dtype"
    )


def _load(file: Path, identities: Sequence[FileIdentity]) -> list[Any]:
    """Return the lazy signals in a file; raise if one of the files has changed meanwhile."""
    format_name = _format_name(file)
    try:
        import hyperspy.api as hs
    except ImportError as error:
        raise missing_package("hyperspy", purpose=f"reading {file.name}") from error
    logger = logging.getLogger("hyperspy.io")
    was_disabled = logger.disabled
    logger.disabled = True  # our error contains the same message
    try:
        with reading(file, f"{format_name} by HyperSpy", advice=_ADVICE):
            # The signal type only selects a class, often of a package that is not installed.
            loaded = hs.load(file, lazy=True, signal_type="", file_format=format_name)
    except ImportError as error:
        raise ImportError(
            f"HyperSpy cannot read {file.name} without another package ({error}): "
            'pip install "rosettasciio[all]"',
            name=error.name,
        ) from error
    finally:
        logger.disabled = was_disabled
    for identity in identities:  # if a file has changed, do not keep the signals
        os.close(identity.open())
    return loaded if isinstance(loaded, list) else [loaded]


def _choose(signals: Sequence[Any], dataset: str | int | None, *, file: str) -> int:
    """Return the number of the signal that the user means."""
    if not signals:
        raise FileFormatError(f"HyperSpy finds no signal in {file}. {_ADVICE}")
    numbers = range(len(signals))
    if dataset is None:
        matches = [n for n in numbers if signals[n].axes_manager.navigation_dimension > 0]
        matches = matches or list(numbers)
    else:
        matches = [n for n in numbers if signals[n].metadata.General.title == dataset]
        if not matches and str(dataset).isdecimal():
            matches = [n for n in numbers if n == int(dataset)]
    if len(matches) == 1:
        return matches[0]
    listing = ", ".join(
        f"{number} {s.metadata.General.title!r} {s.data.shape} {s.data.dtype}"
        for number, s in enumerate(signals)
    )
    if matches:
        title = "" if dataset is None else f" called {dataset!r}"
        raise FileFormatError(
            f"{file} contains several signals{title}: pass dataset= as one of the numbers in "
            f"{listing}"
        )
    raise ArgumentValueError(
        f"there is no signal {dataset!r} in {Path(file).name}: pass a number or title from "
        f"{listing}"
    )
