"""Open files of instruments with HyperSpy and RosettaSciIO, and read the axes of their signals."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da

from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.targets import METADATA
from udfdask.errors import ArgumentValueError, FileFormatError, UDFError, missing_package
from udfdask.geometry.electrons import volts
from udfdask.geometry.labels import axes_of_signal, ordered_axes
from udfdask.geometry.units import unit_of_quantity
from udfdask.io.file_identity import COPY_AGAIN, FileIdentity, check_values, reading, unchanged
from udfdask.io.hdf5 import hyperspy_format, take_over
from udfdask.io.lazy_source import StoredArray, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array

# endings of the names of other files that contain values or shapes, by the file's suffix
_OTHER_FILES = {".mib": ".hdr", ".rpl": ".raw", ".emi": "_*.ser"}
_FORMATS = {".xml": "EMPAD"}  # of suffixes that several of HyperSpy's readers have
_NOT_LAZY = (".prz",)  # HyperSpy maps the values of these archives even if they are compressed
_ADVICE = (
    "If it contains only frames, pass nav_shape, sig_shape and dtype; open NetCDF 3 with xarray. "
    f"{COPY_AGAIN}"
)

_loaded = OncePerProcess(4)  # signals of files: to load a file can take seconds, even lazily


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSpyArray(StoredArray):
    """An array in a file that HyperSpy reads; each process loads the file once.

    Names of HyperSpy's own lazy arrays depend only on the path or are random, and their tasks do
    not notice a change. `files` are all that contain a part of the recording.
    """

    path: str
    files: tuple[FileIdentity, ...]
    number: int

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`, as HyperSpy reads it."""
        with unchanged(self.files), reading(self.path, "HyperSpy", part=f"at {index}"):
            signals, _ = _loaded.get(self.files, lambda: _load(Path(self.path), self.files))
            part = signals[self.number].data[index]
            return part.compute(scheduler="sync") if isinstance(part, da.Array) else part


@dataclass(frozen=True, slots=True, kw_only=True)
class TiffSeries(StoredArray):
    """A compressed series of a TIFF file, which HyperSpy would read as one chunk."""

    file: FileIdentity
    number: int

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`: tifffile decodes its pages or tiles."""
        import zarr
        from tifffile import imread

        path = self.file.path
        with (
            unchanged([self.file]),
            reading(path, "TIFF", part=f"at {index}"),
            # dask runs tasks in parallel
            imread(path, series=self.number, aszarr=True, maxworkers=1) as store,
        ):
            return zarr.open_array(store, mode="r")[index]


def open_with_hyperspy(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open a signal by its number or title, by default the one with navigation axes."""
    files = _files(file)
    signals, is_lazy = _load(file, files)
    number = _choose(signals, dataset, file=str(file))
    signal = signals[number]
    manager, array = signal.axes_manager, da.asarray(signal.data)
    check_values(str(file), array.shape, array.dtype)
    # signals of formats that do not know the scan have all dimensions
    is_known = manager.navigation_dimension or manager.signal_dimension <= 2
    known = manager.signal_dimension if is_known else 0
    sig = choose_sig_dims(sig_dims, array.ndim, known=known)
    # A signal whose axes were declared by `axis.navigate` has its navigation axes anywhere.
    order = tuple(axis.index_in_array for axis in ordered_axes(signal))
    is_moved = order != tuple(range(array.ndim))
    # RosettaSciIO maps these files in each task, so that any part of the file is read alone. Of
    # others, tasks read HyperSpy's chunks: it would read a complete one for each part of it.
    is_mapped = any(str(name).startswith("slice_memmap") for name in array.dask.layers)
    own = take_over(array, files[0]) or _tiff_series(array, files[0], number)
    where: dict[str, Any] = {"shape": array.shape, "dtype": array.dtype}
    source = own or HyperSpyArray(path=str(file), files=files, number=number, **where)
    if own is None:
        _loaded.get(files, lambda: (signals, is_lazy))
    grid = array.chunks
    if own is not None or is_mapped:
        grid = choose_chunks(source, sig, None if is_moved else chunks)
    lazy = lazy_array(source, grid, prefix="from-hyperspy")
    lazy = lazy.transpose(order) if is_moved else lazy
    if chunks is not None:
        lazy = lazy.rechunk(choose_chunks(lazy, sig, chunks))
    plugin = signal.metadata.get_item("General.FileIO.0.io_plugin", default="").rpartition(".")[2]
    reader = f"HyperSpy ({plugin}{'' if is_lazy else ', read at once'})"
    reader += f", signal {number}" if len(signals) > 1 else ""
    title, axes = signal.metadata.General.title or file.stem, axes_of_signal(signal)
    how: dict[str, Any] = {"unit": read_unit(signal), "voltage": read_voltage(signal)}
    return opened_array(lazy, sig, reader=reader, title=title, axes=axes, **how)


def _files(file: Path) -> tuple[FileIdentity, ...]:
    """Return the identity of a file or store, then those of other files of the recording."""
    suffix = file.suffix.lower()
    others: list[Path] = []
    if suffix == ".xml":  # of EMPAD, which names the file with the frames
        content = file.read_bytes()
        others = [raw for raw in sorted(file.parent.glob("*.raw")) if raw.name.encode() in content]
    elif suffix in _OTHER_FILES:
        others = sorted(file.parent.glob(glob.escape(file.stem) + _OTHER_FILES[suffix]))
    main = next((file / name for name in METADATA if (file / name).is_file()), file)
    return tuple(map(FileIdentity.of, (main, *others)))


def _tiff_series(array: da.Array, identity: FileIdentity, number: int) -> StoredArray | None:
    """Return a series of a TIFF file, mapped unless it is compressed; None for other arrays."""
    if Path(identity.path).suffix.lower() not in (".tif", ".tiff"):
        return None
    import tifffile

    source: StoredArray
    try:
        mapped = tifffile.memmap(identity.path, series=number, mode="r")
        source = MappedArray.of(mapped, identity)
    except ValueError:  # compressed, or its pages are not next to each other
        with tifffile.TiffFile(identity.path) as opened:
            series = opened.series[number]
        where: dict[str, Any] = {"shape": series.shape, "dtype": series.dtype}
        source = TiffSeries(file=identity, number=number, **where)
    same = source.shape == array.shape and source.dtype.newbyteorder("=") == array.dtype
    return source if same and array.size else None


def _load(file: Path, files: Sequence[FileIdentity]) -> tuple[list[Any], bool]:
    """Return the signals in a file, and whether they are lazy: not all formats can be."""
    try:
        import hyperspy.api as hs
        from rsciio import IO_PLUGINS
    except ImportError as error:
        raise missing_package("hyperspy", purpose=f"reading {file.name}") from error
    suffix = file.suffix.lower()
    name = hyperspy_format(file) or _FORMATS.get(suffix)
    known = {str(each).lower() for plugin in IO_PLUGINS for each in plugin["file_extensions"]}
    if name is None and suffix.removeprefix(".") not in known:  # HyperSpy would read it as a photo
        raise FileFormatError(f"{file} cannot be read: no reader has its suffix. {_ADVICE}")
    # The signal type only selects a class, often of a package that is not installed.
    how = {"signal_type": "", "file_format": name}
    is_lazy = suffix not in _NOT_LAZY
    with unchanged(files), reading(file, "HyperSpy", advice=_ADVICE):
        try:
            loaded = hs.load(file, lazy=is_lazy, **how)
        except NotImplementedError:
            is_lazy = False
            loaded = hs.load(file, lazy=False, **how)
    signals = loaded if isinstance(loaded, list) else [loaded]
    if not (is_lazy or any(signal.data.size for signal in signals)):
        raise FileFormatError(f"HyperSpy finds no values in {file}. {COPY_AGAIN}")
    return signals, is_lazy


def _choose(signals: Sequence[Any], dataset: str | int | None, *, file: str) -> int:
    titles = [signal.metadata.General.title for signal in signals]
    if dataset is None:
        matches = [n for n, s in enumerate(signals) if s.axes_manager.navigation_dimension > 0]
        matches = matches or list(range(len(signals)))
    else:
        matches = [n for n, title in enumerate(titles) if title == dataset]
        matches = matches or [n for n in range(len(signals)) if str(n) == str(dataset)]
    if len(matches) == 1:
        return matches[0]
    shown = enumerate(zip(titles, (s.data for s in signals), strict=True))
    listing = ", ".join(f"{n} {title!r} {data.shape} {data.dtype}" for n, (title, data) in shown)
    if matches or dataset is None:
        raise FileFormatError(
            f"{file} contains several signals: pass dataset= as one of the numbers in {listing}"
        )
    where = f"{dataset!r} in {Path(file).name}"
    raise ArgumentValueError(f"there is no signal {where}: pass a number or title from {listing}")


def read_unit(signal: Any) -> str | None:
    """Return the unit of the data of a signal; None if it is not known."""
    return unit_of_quantity(signal.metadata.get_item("Signal.quantity", default=None))


def read_voltage(signal: Any) -> float | None:
    """Return the voltage of the microscope of a signal in volts; None if it is not known."""
    for name in ("TEM", "SEM"):
        path = f"Acquisition_instrument.{name}.beam_energy"
        energy = signal.metadata.get_item(path, default=None)  # in keV
        with contextlib.suppress(UDFError, TypeError):  # some formats write 0 for an unknown one
            return volts(1e3 * energy)
    return None
