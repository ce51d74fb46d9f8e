"""Find the dataset of an HDF5 file that contains the recording, also behind links."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
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
from udfdask.io.hdf5_axes import get_item, number_of, sig_dims, text
from udfdask.io.hdf5_links import locate

_PART = re.compile(r"(.*/)?data_(\d{6})")
"""Names of the parts of one recording, as DECTRIS writes them."""

_Address = tuple[int, int, int]

_MOST_DEFAULTS = 8
"""Maximum number of groups from the root of a NeXus file to its default data."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """What is in a file, or in a group of it."""

    datasets: list[Candidate]
    """Each dataset once, by one of its paths."""
    signals: list[Candidate]
    """The datasets that NXdata groups name as their signal."""
    broken: list[str]
    """Paths of links to other files that cannot be opened."""
    lost: list[str]
    """Paths of signals that are links which cannot be opened."""


def find_dataset(opened: Any, dataset: str | int | None, file: str, asked: int | None) -> Candidate:
    """Return the user's dataset in an open HDF5 file, or the one that contains the recording.

    `asked` is the number of signal dimensions that the user wants, None for any.
    """
    import h5py

    if dataset is None:
        return _recording(opened, "", file)
    name = str(dataset).strip("/")
    item = get_item(opened, name) if name else None
    if isinstance(item, h5py.Dataset) and item.shape is not None:
        return _candidate(name, item)
    if isinstance(item, h5py.Group):
        return _recording(opened, name, file)
    found = _contents(opened, "").datasets
    if item is None and name and opened.get(name, getlink=True) is not None:
        raise _broken(opened, [name], found)
    raise unknown_dataset(dataset, found, file=Path(file).name)


def _recording(opened: Any, top: str, file: str) -> Candidate:
    """Return the dataset, or the parts, of a group that contain the recording.

    NeXus says it by the attributes `default` and `signal`. Otherwise it is the largest dataset.
    """
    contents = _contents(opened, top)
    default = _default_signal(opened, top)
    if default is not None and _is_recording(default, opened, least=2):
        stacks = [c for c in contents.datasets if _is_recording(c, opened, least=3)]
        is_stack = _is_recording(default, opened, least=3)
        if is_stack or all(c.nbytes < default.nbytes for c in stacks):
            return _with_parts(default, contents, opened, file, others=())
    signals = [c for c in contents.signals if _is_recording(c, opened, least=2)]
    recordings = [c for c in signals if _is_recording(c, opened, least=3)]
    lost = contents.lost or ([] if recordings else contents.broken)
    if lost:
        raise _broken(opened, lost, contents.datasets)
    if recordings:
        chosen = choose_largest(recordings, file=file)
        return _with_parts(chosen, contents, opened, file, others=recordings)
    joined = list(_joined(contents.datasets))
    masters = {_parent(c.name) for c in joined if c.parts}
    # a master has other stacks, such as flat fields of its modules
    joined = [c for c in joined if _parent(c.name) in masters or not masters]
    if signals:  # not clearly frames, so that only the size can tell
        stacks = [c for c in joined if _is_recording(c, opened, least=3)]
        names = {c.name for c in signals}
        pool = [*signals, *(c for c in stacks if c.name not in names)]
        chosen = choose_largest(pool, file=file)
    else:
        pool = joined
        chosen = choose_dataset(joined, file=file)
    return _with_parts(chosen, contents, opened, file, others=pool)


def _contents(opened: Any, top: str) -> _Contents:
    """Return the datasets of a group of a file, also behind links."""
    import h5py

    found: dict[_Address, Candidate] = {}
    signals, broken, lost, seen = list[str](), list[str](), list[str](), set[_Address]()
    files: dict[bytes, tuple[int, int]] = {}
    hard, links = deque([top]), deque[str]()
    while hard or links:  # links later, so that datasets have their own names
        is_hard = len(hard) > 0
        path = (hard or links).popleft()
        item = opened[path or "/"] if is_hard else get_item(opened, path)
        if item is None and isinstance(opened.get(path, getlink=True), h5py.ExternalLink):
            broken.append(path)
        address = None if item is None else _address(item, files)
        if address is None or address in seen:
            continue
        seen.add(address)
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found[address] = _candidate(path, item)
        elif isinstance(item, h5py.Group):
            for name in item:
                if isinstance(name, bytes):  # not UTF-8, so that it has no path
                    continue
                is_hard = isinstance(item.get(name, getlink=True), h5py.HardLink)
                (hard if is_hard else links).append(f"{path}/{name}".lstrip("/"))
            signal = _signal(item)
            signals += [] if signal is None else [f"{path}/{signal}".strip("/")]
    for path in signals:
        item = get_item(opened, path)
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            address = _address(item, files)
            if address not in found or found[address].name not in signals:
                # by the path through NXdata, which has the axes
                found[address] = _candidate(path, item)
        elif item is None and opened.get(path, getlink=True) is not None:
            lost.append(path)
    datasets = list(found.values())
    return _Contents(datasets, [c for c in datasets if c.name in signals], broken, lost)


def _address(item: Any, files: dict[bytes, tuple[int, int]]) -> _Address:
    """Return the file and the position of an object, equal for all links to it.

    `files` has the devices and inodes of files that are known already.
    """
    import h5py

    name = h5py.h5f.get_name(item.id)
    if name not in files:
        status = Path(os.fsdecode(name)).stat()
        files[name] = (status.st_dev, status.st_ino)
    return *files[name], h5py.h5o.get_info(item.id).addr


def _candidate(name: str, dataset: Any) -> Candidate:
    """Return the description of an open dataset."""
    try:
        dtype = dataset.dtype
    except TypeError:  # NumPy has no such type, as for HDF5's times
        dtype = np.dtype("V")
    return Candidate(name=name, shape=dataset.shape, dtype=dtype, is_virtual=dataset.is_virtual)


def _signal(group: Any) -> str | None:
    """Return the name of the dataset that an NXdata group names as its signal."""
    name = text(group.attrs.get("signal"))
    if name is not None or text(group.attrs.get("NX_class")) != "NXdata":
        return name
    for each in group:  # in older files the signal has an attribute
        if number_of(get_item(group, each), "signal") == 1:
            return str(each)
    return None


def _default_signal(opened: Any, top: str) -> Candidate | None:
    """Return the signal to which the attributes `default` lead; None if they lead nowhere."""
    import h5py

    path, group = top, opened[top or "/"]
    if not top and "default" not in group.attrs and len(group) == 1:
        path = str(next(iter(group)))  # the only entry; bytes if its name is not UTF-8
        group = get_item(opened, path)
    for _ in range(_MOST_DEFAULTS):
        if not isinstance(group, h5py.Group):
            return None
        with ExitStack() as stack:
            place = locate(opened, path, stack)
            path = path if place.passed else place.path  # parts are found by their own names
        name, kind = text(group.attrs.get("default")), "default"
        if name in (None, "."):
            name, kind = _signal(group), "signal"
        if name is None:
            return None
        path = (name if name.startswith("/") else f"{path}/{name}").strip("/")
        group = get_item(opened, path)
        if isinstance(group, h5py.Dataset):
            return _candidate(path, group) if kind == "signal" else None
    return None


def _is_recording(candidate: Candidate, opened: Any, *, least: int) -> bool:
    """Return whether a dataset has at least `least` dimensions of numbers, or has spectra."""
    if candidate.dtype.kind not in "biufc" or candidate.nbytes == 0:
        return False
    item, n_dims = opened[candidate.name], len(candidate.shape)
    if n_dims >= least:  # "rgb-image" is a picture, such as one of the sample
        return not (text(item.attrs.get("interpretation")) or "").endswith("-image")
    return n_dims == 2 and sig_dims(opened[_parent(candidate.name) or "/"], item) == 1


def _joined(datasets: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield the datasets; those that are parts of one recording as one."""
    series: dict[str, list[Candidate]] = {}
    for each in datasets:
        match = _PART.fullmatch(each.name) if len(each.shape) >= 3 else None
        if match is None:
            yield each
        else:
            series.setdefault(match[1] or "", []).append(each)
    for parts in series.values():
        parts.sort(key=lambda part: part.name)
        shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
        yield replace(parts[0], shape=shape, parts=tuple(parts))


def _with_parts(
    chosen: Candidate, contents: _Contents, opened: Any, file: str, *, others: Sequence[Candidate]
) -> Candidate:
    """Return the chosen dataset, with all parts of the recording if it is one of them.

    Raise FileFormatError if parts are missing or differ, or if `others` are of the same kind.
    """
    for each in _joined(contents.datasets):
        if chosen.name in [part.name for part in each.parts]:
            chosen = each
    stem = _stem(chosen.name)
    broken = [each for each in contents.broken if _stem(each) == stem]
    numbers = [int(part.name[-6:]) for part in chosen.parts]
    first, last = min([*numbers, 1]), max([*numbers, 0])
    missing = sorted(set(range(first, last + 1)).difference(numbers))
    if broken:
        raise _broken(opened, broken, chosen.parts or [chosen])
    if missing:
        raise FileFormatError(
            f"{file}: the part {chosen.name[:-6]}{missing[0]:06} is missing: restore the file, or "
            f"pass dataset= as one of {listing(chosen.parts)}"
        )
    if len({(part.shape[1:], part.dtype) for part in chosen.parts}) > 1:
        raise FileFormatError(
            f"{file}: the parts of a recording must have frames of one shape and type: pass "
            f"dataset= as one of {listing(chosen.parts)}"
        )
    alike = [c for c in others if _stem(c.name) == stem and c.shape[-2:] == chosen.shape[-2:]]
    if len(alike) > 1 and len(chosen.shape) >= 3:
        raise FileFormatError(
            f"{file} contains several recordings: pass dataset= as one of {listing(alike)}"
        )
    return chosen


def _parent(name: str) -> str:
    """Return the path of the group of a dataset."""
    return name.rpartition("/")[0]


def _stem(name: str) -> str:
    """Return a path without the numbers in it."""
    return re.sub(r"\d+", "", name)


def _broken(opened: Any, links: Sequence[str], others: Sequence[Candidate]) -> FileFormatError:
    """Return the error for links that lead nowhere."""
    why = f"{links[0]} is a link that cannot be opened"
    with ExitStack() as stack:
        try:
            locate(opened, links[0], stack)
        except (FileFormatError, OSError) as error:
            why = str(error) if isinstance(error, FileFormatError) else f"{why} ({error})"
    more = f" {len(links) - 1} more links lead nowhere." if links[1:] else ""
    return FileFormatError(f"{why}.{more} Or pass dataset= as one of {listing(others)}")
