"""Find the files that hold the values of virtual datasets of HDF5.

HDF5 reads fill values in place of a source that is missing or too short, without an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from udfdask.errors import FileFormatError
from udfdask.io.file_identity import FileIdentity
from udfdask.io.hdf5_axes import get_item


def other_files(dataset: Any) -> tuple[FileIdentity, ...]:
    """Return the files other than that of an open dataset that hold its values.

    Raise FileFormatError if one of them, or a dataset in it, is missing or too short.
    """
    found: dict[str, FileIdentity] = {}
    _follow(dataset, found, set())
    return tuple(found.values())


def _follow(dataset: Any, found: dict[str, FileIdentity], done: set[tuple[str, str]]) -> None:
    """Add the files that hold values of a dataset."""
    import h5py

    home = Path(dataset.file.filename)
    words = f"dataset {dataset.name} of {home}"
    if (str(home), dataset.name) in done:
        return
    done.add((str(home), dataset.name))
    for name, *_ in dataset.external or ():  # HDF5 raises if one of them is missing
        if Path(name).is_file():
            found.setdefault(name, FileIdentity.of(Path(name).absolute()))
    if not dataset.is_virtual:
        return
    for (name, path), last in _sources(dataset).items():
        file = home if name == "." else _existing(name, home)
        if file is None:
            raise FileFormatError(
                f"{words} also needs the file {name}, which does not exist. Put it back next to it"
            )
        with h5py.File(file, "r") as opened:
            source = get_item(opened, path)
            shape = getattr(source, "shape", None)
            if shape is None or any(end >= n for end, n in zip(last, shape, strict=False)):
                raise FileFormatError(
                    f"{words} also needs {path} of {file}, which is missing or has a smaller shape "
                    f"({shape}) than it needs: HDF5 would read fill values instead. Wait until it "
                    "is written, or restore the file"
                )
            for each in {str(file), source.file.filename} - {str(home)}:
                found.setdefault(each, FileIdentity.of(each))
            _follow(source, found, done)


def _sources(dataset: Any) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the sources of a virtual dataset, file and path, and the last positions needed.

    Many parts can come from one source. The positions are empty if there is no limit.
    """
    needed: dict[tuple[str, str], tuple[int, ...]] = {}
    for source in dataset.virtual_sources():
        try:
            last = source.src_space.get_select_bounds()[1]
        except (ValueError, RuntimeError):  # without an end, or empty
            last = ()
        name = (source.file_name.replace("%%", "%"), source.dset_name.replace("%%", "%"))
        needed[name] = tuple(map(max, needed[name], last)) if needed.get(name) else tuple(last)
    return needed


def _existing(name: str, home: Path) -> Path | None:
    """Return the file that HDF5 finds by a name in a file `home`; None if there is none.

    HDF5 looks next to that file and, if it is a symbolic link, next to the file behind it. It also
    looks in the folder of the process, but that of a worker can be another one.
    """
    names = [name, Path(name).name] if Path(name).is_absolute() else [name]
    places = (folder / each for each in names for folder in (home.parent, home.resolve().parent))
    return next((place.absolute() for place in places if place.is_file()), None)
