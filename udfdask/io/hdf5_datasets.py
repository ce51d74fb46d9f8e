"""Find the dataset of an HDF5 file that contains the recording, and all files with its values."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError
from udfdask.io.choose_dataset import (
    Candidate,
    choose_dataset,
    choose_largest,
    listing,
    unknown_dataset,
)
from udfdask.io.file_identity import FileIdentity
from udfdask.io.hdf5_axes import get_item, sig_dims, text, texts

_PART = re.compile(r"(.*/)?data_\d{6}")
"""Names of the parts of one recording, as DECTRIS writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """The datasets of a file or group by address, and links that lead nowhere."""

    found: dict[Any, Candidate]
    broken: list[str]
    """External links."""
    lost: list[str]
    """Paths of the signals of NXdata."""

    @property
    def datasets(self) -> list[Candidate]:
        """Each dataset once; the parts of a recording are one."""
        return list({candidate.name: candidate for candidate in self.found.values()}.values())


def find_dataset(opened: Any, dataset: str | int | None, file: str) -> Candidate:
    """Return the user's dataset in an open HDF5 file, or the one that contains the recording."""
    import h5py

    name = "" if dataset is None else str(dataset).strip("/")
    item = get_item(opened, name or "/")
    if _is_dataset(item):
        return _candidate(opened, name)
    if dataset is None or (name and isinstance(item, h5py.Group)):
        return _recording(opened, name, file)
    found = _contents(opened, "").datasets
    if item is None and opened.get(name, getlink=True) is not None:
        raise _broken(opened, name, found)
    raise unknown_dataset(dataset, found, file=Path(file).name)


def _recording(opened: Any, top: str, file: str) -> Candidate:
    """Return the dataset, or parts, that NeXus names in a group, or else the largest."""
    contents = _contents(opened, top)
    _join_parts(contents.found)
    datasets = contents.datasets
    stacks = [c for c in datasets if c.rank == 3]
    default = _default_signal(opened, top)
    if default is not None:
        chosen = contents.found.get(_address(opened[default])) or _candidate(opened, default)
        # an image is not a recording if there are larger data with three dimensions
        if chosen.rank == 3 or (chosen.rank == 2 and all(c.nbytes < chosen.nbytes for c in stacks)):
            return _complete(chosen, contents, opened)
    pool = [c for c in stacks if c.is_signal]
    if contents.lost or (contents.broken and not pool):
        raise _broken(opened, (contents.lost or contents.broken)[0], datasets)
    series = [c for c in datasets if c.parts]
    if not pool and series:
        pool = list(dict.fromkeys(series + [c for c in datasets if c.is_virtual]))  # of the parts
    if not pool and (images := [c for c in datasets if c.rank == 2 and c.is_signal]):
        pool = images + stacks  # not clearly frames, so that only the size can tell
    chosen = choose_largest(pool, file=file) if pool else choose_dataset(datasets, file=file)
    # numbers in names count the recordings of a file
    kind = (re.sub(r"\d+", "", chosen.name), chosen.shape[-2:])
    alike = [c for c in pool or datasets if (re.sub(r"\d+", "", c.name), c.shape[-2:]) == kind]
    if len(alike) > 1 and len(chosen.shape) >= 3:
        raise FileFormatError(
            f"{file} contains several recordings: pass dataset= as one of {listing(alike)}"
        )
    return _complete(chosen, contents, opened)


def _contents(opened: Any, top: str) -> _Contents:
    """Return the datasets of a group of a file, also behind links."""
    import h5py

    contents, signals, seen = _Contents(found={}, broken=[], lost=[]), list[str](), set[Any]()
    hard, links = deque([top]), deque[str]()
    while hard or links:  # links later, so that datasets have their own names
        path = (hard or links).popleft()
        item = get_item(opened, path or "/")
        if item is None:
            if isinstance(opened.get(path, getlink=True), h5py.ExternalLink):
                contents.broken.append(path)
            continue
        address = _address(item)
        if address in seen:
            continue
        seen.add(address)
        if _is_dataset(item):
            contents.found[address] = _candidate(opened, path)
        elif isinstance(item, h5py.Group):
            for name in (each for each in item if isinstance(each, str)):  # others are not UTF-8
                is_hard = isinstance(item.get(name, getlink=True), h5py.HardLink)
                (hard if is_hard else links).append(f"{path}/{name}".lstrip("/"))
            if (signal := _signal(item)) is not None:
                signals.append(f"{path}/{signal}".strip("/"))
    for path in reversed(signals):  # by the path through NXdata, which has the axes
        item = get_item(opened, path)
        if item is None:
            contents.lost.insert(0, path)
        elif _is_dataset(item):
            contents.found[_address(item)] = _candidate(opened, path, is_signal=True)
    return contents


def _is_dataset(item: Any) -> bool:
    import h5py

    return isinstance(item, h5py.Dataset) and item.shape is not None


def _address(item: Any) -> tuple[str, int]:
    """Return the file and the position of an object, equal for all links to it."""
    import h5py

    return item.file.filename, h5py.h5o.get_info(item.id).addr


def _candidate(opened: Any, name: str, *, is_signal: bool = False) -> Candidate:
    item = opened[name]
    try:
        dtype = item.dtype
    except TypeError:  # NumPy has no such type, as for HDF5's times
        dtype = np.dtype("V")
    # "rgb-image" is a picture, such as one of the sample
    is_picture = (text(item.attrs.get("interpretation")) or "").endswith("-image")
    rank = 0 if is_picture or dtype.kind not in "biufc" or not item.size else min(item.ndim, 3)
    if rank == 2 and sig_dims(opened[_parent(name) or "/"], item) == 1:  # spectra along a line
        rank = 3
    how: dict[str, Any] = {"is_virtual": item.is_virtual, "is_signal": is_signal}
    return Candidate(name=name, shape=item.shape, dtype=dtype, rank=rank, **how)


def _signal(group: Any) -> str | None:
    """Return the name of the dataset that an NXdata group names as its signal."""
    name = text(group.attrs.get("signal"))
    if name is not None or text(group.attrs.get("NX_class")) != "NXdata":
        return name
    for each in group:  # in older files, the attribute `signal` of the dataset is 1
        value = getattr(get_item(group, each), "attrs", {}).get("signal")
        if value is not None and (texts(value) == ["1"] or np.array_equal(np.ravel(value), [1])):
            return str(each)
    return None


def _default_signal(opened: Any, top: str) -> str | None:
    """Return the path to which the attributes `default` lead; None if they lead to no signal."""
    import h5py

    path = top
    if not top and "default" not in opened.attrs and len(opened) == 1:
        path = str(next(iter(opened)))  # the only entry
    for _ in range(8):  # groups can name each other in a circle
        group = get_item(opened, path or "/")
        name = text(group.attrs.get("default")) if isinstance(group, h5py.Group) else None
        if name in (None, "."):
            break
        path = (name if name.startswith("/") else f"{path}/{name}").strip("/")
    else:
        return None
    signal = _signal(group) if isinstance(group, h5py.Group) else None
    path = f"{path}/{signal}".strip("/")
    return path if signal is not None and _is_dataset(get_item(opened, path)) else None


def _join_parts(found: dict[Any, Candidate]) -> None:
    """Put one candidate in place of all datasets that are parts of one recording."""
    series: dict[str, list[Any]] = {}
    for address, each in found.items():
        if len(each.shape) >= 3 and _PART.fullmatch(each.name):
            series.setdefault(_parent(each.name), []).append(address)
    for addresses in series.values():
        parts = sorted((found[each] for each in addresses), key=lambda part: part.name)
        shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
        is_signal = any(part.is_signal for part in parts)
        whole = replace(parts[0], shape=shape, parts=tuple(parts), is_signal=is_signal)
        found.update(dict.fromkeys(addresses, whole))


def _complete(chosen: Candidate, contents: _Contents, opened: Any) -> Candidate:
    """Return the chosen dataset; raise if parts of a recording differ or are missing."""
    if not chosen.parts:
        return chosen
    if len({(part.shape[1:], part.dtype) for part in chosen.parts}) > 1:
        raise FileFormatError(
            f"{opened.filename}: the parts of a recording differ in shape or dtype: "
            f"{listing(chosen.parts)}. Pass dataset= as one of them"
        )
    numbers = [int(part.name[-6:]) for part in chosen.parts]
    folder = _parent(chosen.name)
    lost = [n for n in contents.broken if _PART.fullmatch(n) and _parent(n) == folder]
    if max(numbers) - min(1, *numbers) + 1 > len(numbers):
        lost.append(f"a part of {folder}")
    if lost:
        raise _broken(opened, lost[0], chosen.parts)
    return chosen


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _broken(opened: Any, link: str, others: Sequence[Candidate]) -> FileFormatError:
    target = opened.get(link, getlink=True)
    where = f" of the file {target.filename}" if hasattr(target, "filename") else ""
    return FileFormatError(
        f"{opened.filename}: {link} is missing, a link{where} that cannot be opened. Put the file "
        f"back, or pass dataset= as one of {listing(others)}"
    )


def other_files(dataset: Any) -> tuple[FileIdentity, ...]:
    """Return the files other than that of an open dataset that hold its values.

    Raise FileFormatError if one of them, or a dataset in it, is missing or too short: HDF5 would
    read fill values in its place, without an error.
    """
    home = dataset.file.filename
    return tuple(FileIdentity.of(path) for path in dict.fromkeys(_paths(dataset)) if path != home)


def _paths(dataset: Any) -> Iterator[str]:
    import h5py

    home = Path(dataset.file.filename)
    for name, *_ in dataset.external or ():  # HDF5 raises if one of them is missing
        if Path(name).is_file():
            yield str(Path(name).absolute())
    needed: dict[tuple[str, str], tuple[int, ...]] = {}  # the last positions that are needed
    for source in dataset.virtual_sources() if dataset.is_virtual else ():
        try:
            last = source.src_space.get_select_bounds()[1]
        except (ValueError, RuntimeError):  # without an end, or empty
            last = ()
        key = (source.file_name.replace("%%", "%"), source.dset_name.replace("%%", "%"))
        needed[key] = tuple(map(max, needed.get(key) or last, last))
    for (name, path), last in needed.items():
        file = home if name == "." else existing_file_of(name, home)
        with h5py.File(file, "r") as opened:
            values = get_item(opened, path)
            shape = getattr(values, "shape", None)
            if shape is None or any(end >= n for end, n in zip(last, shape, strict=False)):
                raise FileFormatError(
                    f"dataset {dataset.name} of {home} also needs {path} of {file}, which is "
                    f"missing or has a smaller shape ({shape}) than it needs. Wait until it is "
                    "written, or restore the file"
                )
            yield from (str(file), values.file.filename, *_paths(values))


def existing_file_of(name: str, home: Path) -> Path:
    """Return the file that HDF5 finds by a name in a file `home`; raise if there is none.

    HDF5 looks next to that file and, if it is a symbolic link, next to the file behind it; and in
    the folder of the process, which can be another one on a worker.
    """
    names = [name, Path(name).name] if Path(name).is_absolute() else [name]
    for place in (home.parent / each for home in (home, home.resolve()) for each in names):
        if place.is_file():
            return place.absolute()
    raise FileFormatError(f"{home} needs {name}, which does not exist. Put it back")
