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

from udfdask.config import chunk_bytes
from udfdask.errors import ArgumentValueError, FileFormatError, missing_package
from udfdask.io.file_identity import FileIdentity, check_values, reading
from udfdask.io.hdf5 import hyperspy_format, take_over
from udfdask.io.hyperspy_axes import read_axis, read_unit
from udfdask.io.lazy_source import StoredArray, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array
from udfdask.once_per_process import OncePerProcess
from udfdask.writing.stores import METADATA

_OTHER_FILES = {".mib": ".hdr", ".rpl": ".raw", ".emi": "_*.ser"}
"""Endings of the names of other files that contain values or shapes, by the file's suffix."""

_loaded = OncePerProcess(4)
"""Signals of the last 4 files: to load a file can take seconds, even lazily."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSpyArray(StoredArray):
    """An array in a file that HyperSpy reads; each process loads the file once.

    HyperSpy's own lazy arrays are not used, because their names depend only on the path or are
    random, and tasks could not notice a change of the file.
    """

    file: FileIdentity
    """The file, or a store's metadata file, when it was opened."""
    others: tuple[FileIdentity, ...]
    """Other files that contain a part of the recording."""
    path: str
    """Absolute path of the file or store."""
    number: int
    """Number of the signal in the file."""

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`, as HyperSpy reads it."""
        with ExitStack() as stack:
            files = (self.file, *self.others)
            for file in files:
                stack.enter_context(file.unchanged())
            stack.enter_context(reading(self.path, "HyperSpy", part=f"at {index}"))
            signals, _ = _loaded.get(files, lambda: _load(Path(self.path), files))
            part = signals[self.number].data[index]
            return part.compute(scheduler="sync") if isinstance(part, da.Array) else part


@dataclass(frozen=True, slots=True, kw_only=True)
class TiffSeries(StoredArray):
    """A compressed series of a TIFF file: each task decodes its pages or tiles.

    HyperSpy's lazy array has the whole file in one chunk.
    """

    file: FileIdentity
    """The file when it was opened."""
    number: int
    """Number of the series in the file."""

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`, decoded by tifffile."""
        import zarr
        from tifffile import imread

        path, number = self.file.path, self.number
        with (
            self.file.unchanged(),
            reading(path, "TIFF", part=f"at {index}"),
            # dask runs the tasks in parallel
            imread(path, series=number, aszarr=True, maxworkers=1) as store,
        ):
            return zarr.open_array(store, mode="r")[index]


def _tiff_series(file: Path, identity: FileIdentity, number: int) -> StoredArray:
    """Return a series of a TIFF file, which tasks map into memory if it is not compressed."""
    import tifffile

    with reading(file, "TIFF"):
        try:
            return MappedArray.of(tifffile.memmap(file, series=number, mode="r"), identity)
        except ValueError:  # compressed, or its pages are not next to each other
            with tifffile.TiffFile(file) as opened:
                series = opened.series[number]
    return TiffSeries(file=identity, number=number, shape=series.shape, dtype=series.dtype)


def open_with_hyperspy(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open a signal by its number or title, by default the one with navigation axes."""
    identity, others = _identities(file)
    files = (identity, *others)
    signals, reader = _load(file, files)
    number = _choose(signals, dataset, file=str(file))
    signal = signals[number]
    manager = signal.axes_manager
    check_values(str(file), signal.data.shape, signal.data.dtype)
    # A signal without navigation axes is not lazy: its data are a NumPy array.
    array = da.asarray(signal.data)
    sig = choose_sig_dims(sig_dims, array.ndim, known=manager.signal_dimension)
    # A signal whose axes were declared by `axis.navigate` has its navigation axes anywhere.
    ordered = (*manager.navigation_axes[::-1], *manager.signal_axes[::-1])
    order = tuple(axis.index_in_array for axis in ordered)
    is_moved = order != tuple(range(array.ndim))
    grid = choose_chunks(array, sig, None if is_moved else chunks)
    # RosettaSciIO maps these files in each task, so that any part of the file is read alone
    is_mapped = any(str(name).startswith("slice_memmap") for name in array.dask.layers)
    title = signal.metadata.General.title or file.stem
    source: StoredArray | None = take_over(array, identity)
    if source is None and file.suffix.lower() in (".tif", ".tiff") and array.size:
        series = _tiff_series(file, identity, number)
        if series.shape == array.shape and series.dtype.newbyteorder("=") == array.dtype:
            source, is_mapped = series, True
    if source is None:
        source = HyperSpyArray(
            file=identity,
            others=others,
            path=str(file),
            number=number,
            shape=array.shape,
            dtype=array.dtype,
        )
        _loaded.get(files, lambda: (signals, reader))
    if is_mapped:
        array = lazy_array(source, grid, prefix="from-hyperspy")
    else:
        # Tasks read HyperSpy's own chunks: it would read a complete one for each part of it.
        array = lazy_array(source, array.chunks, prefix="from-hyperspy")
        array = array if chunks is None or is_moved else array.rechunk(grid)
    if is_moved:
        array = array.transpose(order)
        array = array if chunks is None else array.rechunk(choose_chunks(array, sig, chunks))
    return opened_array(
        array,
        sig,
        reader=reader + (f", signal {number}" if len(signals) > 1 else ""),
        title=title,
        axes=[read_axis(axis) for axis in ordered],
        unit=read_unit(signal),
    )


def _identities(file: Path) -> tuple[FileIdentity, tuple[FileIdentity, ...]]:
    """Return the identity of a file or store, and those of other files of the recording."""
    ending = _OTHER_FILES.get(file.suffix.lower())
    others = sorted(file.parent.glob(glob.escape(file.stem) + ending)) if ending else []
    if file.suffix.lower() == ".xml":  # of EMPAD, which names the file with the frames
        content = file.read_bytes()
        others = [raw for raw in sorted(file.parent.glob("*.raw")) if raw.name.encode() in content]
    main = next((file / name for name in METADATA if (file / name).is_file()), file)
    return FileIdentity.of(main), tuple(map(FileIdentity.of, others))


def _format_names(file: Path) -> list[str]:
    """Return the names of the formats that HyperSpy knows for the contents or suffix of a file."""
    known = hyperspy_format(file)
    if known is not None:
        return [known]
    try:
        import hyperspy.api  # noqa: F401
        from rsciio import IO_PLUGINS
    except ImportError as error:
        raise missing_package("hyperspy", purpose=f"reading {file.name}") from error
    suffix = file.suffix.lower().removeprefix(".")
    names = [str(plugin["name"]) for plugin in IO_PLUGINS if suffix in plugin["file_extensions"]]
    if not names or suffix in ("", "nc"):  # HyperSpy's .nc are files of its first versions
        raise FileFormatError(
            f"no reader knows {file}: its suffix {file.suffix!r} is not .npy, .h5, .zarr or a "
            "suffix of HyperSpy's formats. If it contains only frames, pass nav_shape, sig_shape "
            "and dtype; open NetCDF 3 with xarray.open_dataset"
        )
    # a format with the name of the suffix is what HyperSpy takes, such as MRC for .mrc
    return [name for name in names if name.lower() == suffix] or names


def _load(file: Path, identities: Sequence[FileIdentity]) -> tuple[list[Any], str]:
    """Return the signals in a file, and its reader in words; raise if a file has changed meanwhile.

    Several formats share a suffix, such as .xml: the first one that can be read is meant. Many
    readers of HyperSpy cannot read lazily, or not all files: small ones are read at once.
    """
    errors: list[Exception] = []
    size, most = sum(identity.size for identity in identities), chunk_bytes()
    for name in _format_names(file):
        # HyperSpy maps the values of a .prz file, an archive, even if they are compressed
        for lazy in (False,) if name == "PantaRhei" else (True, False):
            if not lazy and size > most:
                if not (errors and isinstance(errors[-1], ImportError)):
                    errors[-1:] = [
                        FileFormatError(
                            f"{file} cannot be read lazily by HyperSpy, and its {size} bytes are "
                            f"more than the {most} of a chunk, up to which it is read at once: "
                            "increase dask's array.chunk-size, or load it with HyperSpy and save "
                            f"it as .hspy. {errors[-1] if errors else ''}"
                        )
                    ]
                continue
            try:
                with reading(file, f"{name} by HyperSpy"):
                    signals = _call_hyperspy(file, name, lazy=lazy)
            except (FileFormatError, ImportError) as error:
                errors.append(error)
                continue
            for identity in identities:  # if a file has changed, do not keep the signals
                os.close(identity.open())
            return signals, f"HyperSpy ({name}{'' if lazy else ', read at once'})"
    # a package that is missing is one of a format that probably is not meant
    raise min(errors, key=lambda error: isinstance(error, ImportError))


def _call_hyperspy(file: Path, name: str, *, lazy: bool) -> list[Any]:
    """Return the signals in a file, as HyperSpy loads them."""
    import hyperspy.api as hs

    logger = logging.getLogger("hyperspy.io")
    was_disabled = logger.disabled
    logger.disabled = True  # our error contains the same message
    try:
        # The signal type only selects a class, often of a package that is not installed.
        loaded = hs.load(file, lazy=lazy, signal_type="", file_format=name)
    except ImportError as error:
        raise ImportError(
            f"HyperSpy cannot read {file.name} without another package ({error}): "
            'pip install "rosettasciio[all]"',
            name=error.name,
        ) from error
    except MemoryError as error:  # of a lazy signal: sizes in the header are damaged
        raise ValueError(f"HyperSpy needs too much memory ({error})") from error
    finally:
        logger.disabled = was_disabled
    signals = loaded if isinstance(loaded, list) else [loaded]
    if not signals or not (lazy or any(signal.data.size for signal in signals)):
        raise ValueError(f"HyperSpy finds no values in {file.name}")
    return signals


def _choose(signals: Sequence[Any], dataset: str | int | None, *, file: str) -> int:
    """Return the number of the signal that the user means."""
    titles = [signal.metadata.General.title for signal in signals]
    if dataset is None:
        matches = [n for n, s in enumerate(signals) if s.axes_manager.navigation_dimension > 0]
        matches = matches or list(range(len(signals)))
    else:
        matches = [n for n, title in enumerate(titles) if title == dataset]
        matches = matches or [n for n in range(len(signals)) if str(n) == str(dataset)]
    if len(matches) == 1:
        return matches[0]
    listing = ", ".join(
        f"{number} {title!r} {signal.data.shape} {signal.data.dtype}"
        for number, (title, signal) in enumerate(zip(titles, signals, strict=True))
    )
    if matches:
        raise FileFormatError(
            f"{file} contains several signals: pass dataset= as one of the numbers in {listing}"
        )
    raise ArgumentValueError(
        f"there is no signal {dataset!r} in {Path(file).name}: pass a number or title from "
        f"{listing}"
    )
