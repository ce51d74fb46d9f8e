"""Find the dataset of an HDF5 file that contains the recording, also behind links."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from udfdask.io.hdf5_axes import get_item, sig_dims, text, texts

_PART = re.compile(r"(.*/)?data_(\d{6})")
"""Names of the parts of one recording, as DECTRIS writes them."""

_MOST_DEFAULTS = 8
"""Maximum number of groups from the root of a NeXus file to its default data."""


@dataclass(slots=True)
class _Contents:
    """What is in a file, or in a group of it."""

    datasets: list[Candidate] = field(default_factory=list)
    """Each dataset once, by one of its paths."""
    signals: list[str] = field(default_factory=list)
    """Paths that NXdata groups name as their signal."""
    broken: list[str] = field(default_factory=list)
    """Paths of links to other files that cannot be opened."""


def find_dataset(opened: Any, dataset: str | int | None, file: str) -> Candidate:
    """Return the user's dataset in an open HDF5 file, or the one that contains the recording."""
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
        raise _broken(opened, name, found)
    raise unknown_dataset(dataset, found, file=Path(file).name)


def _recording(opened: Any, top: str, file: str) -> Candidate:
    """Return the dataset, or the parts, of a group that contain the recording.

    NeXus says it by the attributes `default` and `signal`. Otherwise it is the largest dataset.
    """
    contents = _contents(opened, top)
    joined = list(_joined(contents.datasets))
    stacks = [c for c in joined if _is_recording(c, opened, least=3)]
    default = _default_signal(opened, top)
    if default is not None and _is_recording(default, opened, least=2):
        # an image is not a recording if there are larger data with three dimensions
        is_largest = all(c.nbytes < default.nbytes for c in stacks)
        if is_largest or _is_recording(default, opened, least=3):
            return _with_parts(default, joined, contents, opened)
    lost = [name for name in contents.signals if get_item(opened, name) is None]
    signals = [c for c in contents.datasets if c.name in contents.signals]
    images = [c for c in signals if _is_recording(c, opened, least=2)]
    named = [c for c in images if _is_recording(c, opened, least=3)]
    if lost or (contents.broken and not named):
        raise _broken(opened, (lost or contents.broken)[0], contents.datasets)
    series = [c for c in joined if c.parts]
    series += [c for c in joined if c.is_virtual and series]  # perhaps of the parts
    pool = named or series or joined
    if named:
        chosen = choose_largest(named, file=file)
    elif images and not series:  # not clearly frames, so that only the size can tell
        pool = [*images, *stacks]
        chosen = choose_largest(pool, file=file)
    else:
        chosen = choose_dataset(pool, file=file)
    kind = (_stem(chosen.name), chosen.shape[-2:])
    alike = {c.name: c for c in pool if (_stem(c.name), c.shape[-2:]) == kind}
    if len(alike) > 1 and len(chosen.shape) >= 3:
        raise FileFormatError(
            f"{file} contains several recordings: pass dataset= as one of "
            f"{listing(list(alike.values()))}"
        )
    return _with_parts(chosen, joined, contents, opened)


def _contents(opened: Any, top: str) -> _Contents:
    """Return the datasets of a group of a file, also behind links."""
    import h5py

    contents, found, seen = _Contents(), dict[Any, Candidate](), set[Any]()
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
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found[address] = _candidate(path, item)
        elif isinstance(item, h5py.Group):
            for name in item:
                if isinstance(name, bytes):  # not UTF-8, so that it has no path
                    continue
                is_hard = isinstance(item.get(name, getlink=True), h5py.HardLink)
                (hard if is_hard else links).append(f"{path}/{name}".lstrip("/"))
            signal = _signal(item)
            contents.signals += [] if signal is None else [f"{path}/{signal}".strip("/")]
    for path in contents.signals:
        item = get_item(opened, path)
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            # by the path through NXdata, which has the axes
            address = _address(item)
            if address not in found or found[address].name not in contents.signals:
                found[address] = _candidate(path, item)
    contents.datasets = list(found.values())
    return contents


def _address(item: Any) -> tuple[str, int]:
    """Return the file and the position of an object, equal for all links to it."""
    import h5py

    return item.file.filename, h5py.h5o.get_info(item.id).addr


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
    for each in group:  # in older files, the attribute `signal` of the dataset is 1
        value = getattr(get_item(group, each), "attrs", {}).get("signal")
        if value is not None and (texts(value) == ["1"] or np.array_equal(np.ravel(value), [1])):
            return str(each)
    return None


def _default_signal(opened: Any, top: str) -> Candidate | None:
    """Return the signal to which the attributes `default` lead; None if they lead nowhere."""
    import h5py

    path, group = top, opened[top or "/"]
    if not top and "default" not in group.attrs and len(group) == 1:
        path = str(next(iter(group)))  # the only entry
        group = get_item(opened, path)
    for _ in range(_MOST_DEFAULTS):
        if not isinstance(group, h5py.Group):
            return None
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
    chosen: Candidate, joined: Sequence[Candidate], contents: _Contents, opened: Any
) -> Candidate:
    """Return the chosen dataset, with all parts of the recording if it is one of them."""
    address = _address(opened[chosen.name])
    whole = [c for c in joined if address in [_address(opened[part.name]) for part in c.parts]]
    chosen = whole[0] if whole else chosen
    if chosen.parts:
        if len({(part.shape[1:], part.dtype) for part in chosen.parts}) > 1:
            raise FileFormatError(
                f"{opened.filename}: the parts of a recording differ in shape or dtype: "
                f"{listing(chosen.parts)}. Pass dataset= as one of them"
            )
        numbers = [int(part.name[-6:]) for part in chosen.parts]
        folder = _parent(chosen.name)
        lost = [n for n in contents.broken if _PART.fullmatch(n) and _parent(n) == folder]
        gap = max(numbers) - min(1, *numbers) + 1 > len(numbers)
        if lost or gap:
            raise _broken(opened, lost[0] if lost else f"a part of {folder}", chosen.parts)
    return chosen


def _parent(name: str) -> str:
    """Return the path of the group of a dataset."""
    return name.rpartition("/")[0]


def _stem(name: str) -> str:
    """Return a path without the numbers in it."""
    return re.sub(r"\d+", "", name)


def _broken(opened: Any, link: str, others: Sequence[Candidate]) -> FileFormatError:
    """Return the error for a link that leads nowhere."""
    target = opened.get(link, getlink=True)
    where = f" of the file {target.filename}" if hasattr(target, "filename") else ""
    return FileFormatError(
        f"{opened.filename}: {link} is missing, a link{where} that cannot be opened. Put the file "
        f"back, or pass dataset= as one of {listing(others)}"
    )
