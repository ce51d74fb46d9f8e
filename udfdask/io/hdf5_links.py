"""Follow links and virtual datasets of HDF5 to the files that hold the values.

HDF5 reads fill values in place of a source that is missing or too short, without an error.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from udfdask.errors import FileFormatError
from udfdask.io.file_identity import FileIdentity

_MOST_LINKS = 100
"""Maximum number of links on the way to an object; HDF5 has a limit of 16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an object is after all links."""

    file: Any
    """The open file."""
    path: str
    """Path in the file."""
    passed: tuple[FileIdentity, ...]
    """The files to which external links led; the last one is `file`."""

    @property
    def words(self) -> str:
        """What it is, in words."""
        return f"dataset {self.path} of {self.file.filename}"

    @property
    def item(self) -> Any:
        """The object."""
        return self.file[self.path or "/"]


def locate(opened: Any, name: str, stack: ExitStack, *, needed_by: str = "") -> Place:
    """Return the place of an object of an open file; `stack` closes the files that are opened.

    Raise FileFormatError if it does not exist; `needed_by` is the virtual dataset that needs it.
    """
    import h5py

    needed_by = needed_by or f"dataset {name} of {opened.filename}"
    file, group, path = opened, opened, ""
    passed: list[FileIdentity] = []
    ahead, n_links = _parts(name), 0
    while ahead:
        part = ahead.pop(0)
        link = group.get(part, getlink=True) if isinstance(group, h5py.Group) else None
        if link is None or n_links > _MOST_LINKS:
            why = "a circle of links" if n_links > _MOST_LINKS else f"{path}/{part} does not exist"
            raise FileFormatError(
                f"{needed_by} cannot be found: {why} in {file.filename}. Restore that file"
            )
        if isinstance(link, h5py.HardLink):
            group, path = group[part], f"{path}/{part}"
            continue
        n_links += 1
        ahead = [*_parts(link.path), *ahead]
        if isinstance(link, h5py.ExternalLink):
            home = Path(file.filename)
            other = _existing(link.filename, home, "HDF5_EXT_PREFIX")
            if other is None:
                raise _missing(needed_by, link.filename)
            passed.append(FileIdentity.of(other))
            file = group = stack.enter_context(h5py.File(other, "r"))
        elif link.path.startswith("/"):
            group = file
        path = path if group is not file else ""
    return Place(file=file, path=path, passed=tuple(passed))


def other_files(place: Place) -> tuple[FileIdentity, ...]:
    """Return the files other than that of a dataset that hold its values.

    Raise FileFormatError if one of them, or a dataset in it, is missing.
    """
    found: dict[str, FileIdentity] = {}
    _follow(place, found, done=set(), above=())
    return tuple(found.values())


def _follow(
    place: Place,
    found: dict[str, FileIdentity],
    done: set[tuple[str, str]],
    above: tuple[tuple[str, str], ...],
) -> None:
    """Add the files that hold values of a dataset; `above` are the datasets that need it."""
    home, dataset = Path(place.file.filename), place.item
    key = (str(home.resolve()), place.path)
    if key in above:
        raise FileFormatError(f"the virtual {place.words} is one of its own sources: write it anew")
    if key in done:
        return
    done.add(key)
    for name, *_ in dataset.external or ():
        other = _existing(name, home, "HDF5_EXTFILE_PREFIX")
        if other is None:
            raise _missing(place.words, name)
        found[str(other)] = FileIdentity.of(other)
    if not dataset.is_virtual:
        return
    for mapping in _mappings(dataset):
        with ExitStack() as stack:
            there, passed = _source(place, mapping, stack)
            for identity in passed:
                found[identity.path] = identity
            _follow(there, found, done, (*above, key))
            _check_extent(there, mapping, place)


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A source of a virtual dataset."""

    file: str
    """Name of the file; "." for the file of the virtual dataset."""
    dataset: str
    """Path in the file."""
    last: tuple[int, ...]
    """The last position that is needed in each dimension; empty if there is no limit."""


def _mappings(dataset: Any) -> list[_Mapping]:
    """Return the sources of a virtual dataset; many parts can come from one source.

    Raise FileFormatError if names stand for any number of sources (``%b``): HDF5 stops at the first
    that is missing.
    """
    needed: dict[tuple[str, str], tuple[int, ...]] = {}
    for source in dataset.virtual_sources():
        try:
            last = source.src_space.get_select_bounds()[1]
        except (ValueError, RuntimeError):  # without an end, or empty
            last = ()
        name = (source.file_name, source.dset_name)
        if any("%b" in each.replace("%%", "") for each in name):
            raise FileFormatError(
                f"dataset {dataset.name} of {dataset.file.filename} is made of all "
                f"datasets of the form {name[1]} in files {name[0]}: write it anew, with a list of "
                "its sources"
            )
        name = (name[0].replace("%%", "%"), name[1].replace("%%", "%"))
        needed[name] = tuple(map(max, needed[name], last)) if needed.get(name) else tuple(last)
    return [_Mapping(*name, last) for name, last in needed.items()]


def _source(
    place: Place, mapping: _Mapping, stack: ExitStack
) -> tuple[Place, tuple[FileIdentity, ...]]:
    """Return the place of a source of a virtual dataset, and the files on the way to it."""
    import h5py

    home = Path(place.file.filename)
    if mapping.file == ".":
        identities: tuple[FileIdentity, ...] = ()
        opened = place.file
    else:
        other = _existing(mapping.file, home, "HDF5_VDS_PREFIX")
        if other is None:
            raise _missing(place.words, mapping.file)
        identities = (FileIdentity.of(other),)
        opened = stack.enter_context(h5py.File(other, "r"))
    there = locate(opened, mapping.dataset, stack, needed_by=place.words)
    if not isinstance(there.item, h5py.Dataset):
        raise FileFormatError(
            f"{place.words} also needs {mapping.dataset!r} of {opened.filename}, which is a group: "
            "write it anew"
        )
    return there, (*identities, *there.passed)


def _check_extent(source: Place, mapping: _Mapping, place: Place) -> None:
    """Raise if a source is smaller than the part of it that a virtual dataset needs."""
    shape = source.item.shape
    if any(last >= n for last, n in zip(mapping.last, shape, strict=False)):
        needed = tuple(last + 1 for last in mapping.last)
        raise FileFormatError(
            f"{place.words} needs at least the shape {needed} of {source.words}, which has "
            f"{shape}: HDF5 would read fill values instead. Wait until it is written, or open that "
            "file"
        )


def _existing(name: str, home: Path, prefixes: str) -> Path | None:
    """Return the file that HDF5 finds by a name in a file `home`; None if there is none.

    `prefixes` is the environment variable with folders in which HDF5 looks first.
    """
    prefix = os.environ.get(prefixes, "").replace("${ORIGIN}", str(home.parent))
    folders = [Path(each) for each in prefix.split(os.pathsep) if each]
    if prefixes == "HDF5_EXTFILE_PREFIX":
        folders, names = [*folders, Path()], [name]
    else:
        # also behind a symbolic link to the file `home`, as those of git-annex
        folders += [home.parent, Path(), home.resolve().parent]
        names = [name, Path(name).name] if Path(name).is_absolute() else [name]
    places = (folder / each for each in names for folder in folders)
    return next((place.absolute() for place in places if place.is_file()), None)


def _missing(needed_by: str, name: str) -> FileFormatError:
    """Return the error for a file that holds values and does not exist."""
    return FileFormatError(
        f"{needed_by} also needs the file {name}, which does not exist. Put it back"
    )


def _parts(path: str) -> list[str]:
    """Return the names in a path inside a file."""
    return [part for part in path.split("/") if part not in ("", ".")]
