"""Find the recording in an HDF5 file, all files with its values, and what is said about its axes.

Axes are described by dimension scales of HDF5, or by attributes of NeXus:
https://manual.nexusformat.org/classes/base_classes/NXdata.html
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.io.choose_dataset import Candidate, choose_dataset, listing, unknown_dataset
from udfdask.io.file_identity import FileIdentity

_PART = re.compile(r"(.*/)?data_(\d{6})")
"""Names of the parts of one recording, as DECTRIS writes them."""

_SIG_DIMS = {"spectrum": 1, "image": 2}
"""Signal dimensions by the attribute `interpretation` of NeXus."""


def find_dataset(opened: Any, dataset: str | int | None, file: str) -> Candidate:
    """Return the user's dataset in an open HDF5 file, or the one that contains the recording."""
    import h5py

    name = "" if dataset is None else str(dataset).strip("/")
    item = _get(opened, name) if name else None
    if _is_dataset(item):
        return _candidate(name, item)
    if dataset is None or isinstance(item, h5py.Group):
        return _recording(opened, name, file)
    found = list(_contents(opened, "")[0].values())
    if item is None and name and opened.get(name, getlink=True) is not None:
        raise _broken(opened, name, found)
    raise unknown_dataset(dataset, found, file=Path(file).name)


def _recording(opened: Any, top: str, file: str) -> Candidate:
    """Return the dataset, or the parts, of a group that contain the recording.

    NeXus says it by the attributes `default` and `signal`. Otherwise it is the largest dataset.
    """
    found, signals, broken = _contents(opened, top)
    _join_parts(found)
    datasets = list({candidate.name: candidate for candidate in found.values()}.values())
    stacks = [c for c in datasets if _is_recording(c, opened)]
    default = _default_signal(opened, top)
    items = {name: _get(opened, name) for name in [*signals, default] if name}
    named = {
        name: found[_address(item)]
        for name, item in items.items()
        if _is_dataset(item) and _address(item) in found
    }
    # an image is not a recording if there are larger data with three dimensions
    largest = max((c.nbytes for c in stacks), default=0)
    images = [c for c in named.values() if len(c.shape) == 2 and c.nbytes > largest]
    chosen = named.get(default or "")
    if chosen not in stacks + images:
        lost = [name for name, item in items.items() if item is None]
        recordings = [c for c in named.values() if c in stacks]
        lost += [] if recordings else broken
        if lost:
            raise _broken(opened, lost[0], datasets)
        series = [c for c in datasets if c.parts]
        series += [c for c in datasets if c.is_virtual and series]  # perhaps of the parts
        pool = list({c.name: c for c in recordings or series or images or datasets}.values())
        chosen = choose_dataset(pool, file=file)
        kinds = [(re.sub(r"\d+", "", c.name), c.shape[-2:]) for c in (chosen, *pool)]
        alike = [c for c, kind in zip(pool, kinds[1:], strict=True) if kind == kinds[0]]
        if len(alike) > 1 and len(chosen.shape) >= 3:
            raise FileFormatError(
                f"{file} contains several recordings: pass dataset= as one of {listing(alike)}"
            )
    if len({(part.shape[1:], part.dtype) for part in chosen.parts}) > 1:
        raise FileFormatError(
            f"{file}: the parts of a recording differ in shape or dtype: "
            f"{listing(chosen.parts)}. Pass dataset= as one of them"
        )
    lost = [
        n
        for n in broken
        if _PART.fullmatch(n) and n.rpartition("/")[0] == chosen.name.rpartition("/")[0]
    ]
    if chosen.parts and lost:
        raise _broken(opened, lost[0], chosen.parts)
    return chosen


def _contents(opened: Any, top: str) -> tuple[dict[Any, Candidate], list[str], list[str]]:
    """Return what is in a group of a file, also behind links.

    These are the datasets by their addresses, the paths that NXdata groups name as their signal,
    and the paths of links to other files that cannot be opened.
    """
    import h5py

    found, signals, broken, seen = dict[Any, Candidate](), list[str](), list[str](), set[Any]()
    paths = deque([top])
    while paths:
        path = paths.popleft()
        item = _get(opened, path or "/")
        if item is None:
            if isinstance(opened.get(path, getlink=True), h5py.ExternalLink):
                broken.append(path)
            continue
        address = _address(item)
        if address in seen:
            continue
        seen.add(address)
        if _is_dataset(item):
            found[address] = _candidate(path, item)
        elif isinstance(item, h5py.Group):
            for name in map(str, item):
                inner = f"{path}/{name}".lstrip("/")
                if isinstance(item.get(name, getlink=True), h5py.HardLink):
                    paths.appendleft(inner)
                else:  # later, so that datasets have their own names
                    paths.append(inner)
            signal = _signal(item)
            signals += [] if signal is None else [f"{path}/{signal}".strip("/")]
    for path in reversed(signals):  # by the path through NXdata, which has the axes
        item = _get(opened, path)
        if _is_dataset(item):
            found[_address(item)] = _candidate(path, item)
    return found, signals, broken


def _get(group: Any, path: str) -> Any:
    """Return an object of a group; None if there is none, or a link leads nowhere."""
    try:
        return group.get(path)
    except (OSError, RuntimeError):  # a file that is not HDF5, or a circle of links
        return None


def _is_dataset(item: Any) -> bool:
    """Return whether an object of a file is a dataset with values."""
    import h5py

    return isinstance(item, h5py.Dataset) and item.shape is not None


def _address(item: Any) -> tuple[str, int]:
    """Return the file and the position of an object, equal for all links to it."""
    import h5py

    return item.file.filename, h5py.h5o.get_info(item.id).addr


def _candidate(name: str, item: Any) -> Candidate:
    """Return the description of an open dataset."""
    return Candidate(name=name, shape=item.shape, dtype=item.dtype, is_virtual=item.is_virtual)


def _signal(group: Any) -> str | None:
    """Return the name of the dataset that an NXdata group names as its signal."""
    name = text(group.attrs.get("signal"))
    if name is not None or text(group.attrs.get("NX_class")) != "NXdata":
        return name
    for each in group:  # in older files, the attribute `signal` of the dataset is 1
        value = getattr(_get(group, each), "attrs", {}).get("signal")
        if value is not None and (texts(value) == ["1"] or np.array_equal(np.ravel(value), [1])):
            return str(each)
    return None


def _default_signal(opened: Any, top: str) -> str | None:
    """Return the path to which the attributes `default` lead; None if they lead to no signal."""
    path, group = top, opened[top or "/"]
    if not top and "default" not in group.attrs and len(group) == 1:
        path = str(next(iter(group)))  # the only entry
        group = _get(opened, path)
    for _ in range(8):  # they may go in a circle
        if not hasattr(group, "keys"):
            return None
        name = text(group.attrs.get("default"))
        if name in (None, "."):
            path = f"{path}/{_signal(group)}".strip("/")
            return path if _is_dataset(_get(opened, path)) else None
        path = (name if str(name).startswith("/") else f"{path}/{name}").strip("/")
        group = _get(opened, path)
    return None


def _is_recording(candidate: Candidate, opened: Any) -> bool:
    """Return whether a dataset can be frames, or spectra along a line."""
    n_dims = len(candidate.shape)
    if candidate.dtype.kind not in "biufc" or candidate.nbytes == 0 or n_dims < 2:
        return False
    group = opened[candidate.name.rpartition("/")[0] or "/"]
    return n_dims > 2 or signal_dims(group, opened[candidate.name]) == 1


def _join_parts(found: dict[Any, Candidate]) -> None:
    """Put one candidate in place of all datasets that are parts of one recording."""
    series: dict[str, list[Any]] = {}
    for address, each in found.items():
        match = _PART.fullmatch(each.name) if len(each.shape) >= 3 else None
        if match is not None:
            series.setdefault(match[1] or "", []).append(address)
    for addresses in series.values():
        parts = sorted((found[each] for each in addresses), key=lambda part: part.name)
        shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
        found.update(dict.fromkeys(addresses, replace(parts[0], shape=shape, parts=tuple(parts))))


def _broken(opened: Any, link: str, others: Sequence[Candidate]) -> FileFormatError:
    """Return the error for a link that leads nowhere."""
    target = getattr(opened.get(link, getlink=True), "filename", "")
    return FileFormatError(
        f"{opened.filename}: {link} is missing, a link {target} that cannot be opened. Put the "
        f"file back, or pass dataset= as one of {listing(others)}"
    )


def other_files(dataset: Any) -> tuple[FileIdentity, ...]:
    """Return the files other than that of an open dataset that hold its values.

    Raise FileFormatError if one of them, or a dataset in it, is missing or too short: HDF5 would
    read fill values in its place, without an error.
    """
    home = dataset.file.filename
    paths = dict.fromkeys(_other_paths(dataset, set()))
    return tuple(FileIdentity.of(path) for path in paths if path != home)


def _other_paths(dataset: Any, done: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the files that hold values of an open dataset."""
    import h5py

    home = Path(dataset.file.filename)
    if (str(home), dataset.name) in done:
        return
    done.add((str(home), dataset.name))
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
        # HDF5 also looks in the folder of the process, but that of a worker can be another one
        beside = [home.parent / name, home.parent / Path(name).name]
        file = home if name == "." else next((f for f in beside if f.is_file()), beside[0])
        if not file.is_file():
            raise FileFormatError(
                f"dataset {dataset.name} of {home} also needs {file}, which does not exist. Put it "
                "back"
            )
        with h5py.File(file, "r") as opened:
            values = _get(opened, path)
            shape = getattr(values, "shape", None)
            if shape is None or any(end >= n for end, n in zip(last, shape, strict=False)):
                raise FileFormatError(
                    f"dataset {dataset.name} of {home} also needs {path} of {file}, which is "
                    f"missing or has a smaller shape ({shape}). Wait until it is written"
                )
            yield from (str(file), values.file.filename)
            yield from _other_paths(values, done)


def texts(value: Any) -> list[str]:
    """Return the strings in an attribute of a file: a str, bytes, or an array of them."""
    found = []
    for each in np.ravel(np.asarray(value)).tolist():
        # h5py returns bytes that are not UTF-8 as surrogates in a string
        raw = each.encode(errors="surrogateescape") if isinstance(each, str) else each
        if isinstance(raw, bytes):
            raw = raw.strip(b" \0")
            try:
                found.append(raw.decode())
            except UnicodeDecodeError:  # in older files
                found.append(raw.decode("latin-1"))
    return found


def text(value: Any) -> str | None:
    """Return the only string in an attribute of a file; None if there are none or several."""
    found = [each for each in texts(value) if each]
    return found[0] if len(found) == 1 else None


def signal_dims(group: Any, dataset: Any) -> int:
    """Return the number of signal dimensions that NeXus says; 0 if it does not say it.

    `group` is the group through which the dataset was found: perhaps by a link.
    """
    for item in (dataset, group):
        known = _SIG_DIMS.get(text(item.attrs.get("interpretation")) or "", 0)
        if 0 < known <= dataset.ndim:
            return known
    return 0


def axes_of(group: Any, dataset: Any, shape: tuple[int, ...]) -> list[Axis | None]:
    """Return the axes of a dataset, or of parts with this shape; None where nothing is known."""
    return [_axis(group, dataset, dim, n) for dim, n in enumerate(shape)]


def _axis(group: Any, dataset: Any, dim: int, n: int) -> Axis | None:
    """Return the axis of a dimension with `n` positions; None if there is none."""
    labels = texts(dataset.attrs.get("DIMENSION_LABELS", []))
    label = labels[dim] if len(labels) == dataset.ndim else ""
    try:  # HDF5's own functions for scales crash if their attributes have another form
        scale = dataset.file[dataset.attrs["DIMENSION_LIST"][dim][0]]
        if text(scale.attrs.get("CLASS")) == "DIMENSION_SCALE":
            return _axis_of_dataset(label or str(scale.name).rpartition("/")[2], scale, n)
    # the scale may have stayed in another file, from which the dataset was copied
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError):
        pass
    return _nexus_axis(group, dataset, dim, n) or (Axis(name=label) if label else None)


def _axis_of_dataset(name: str, values: Any, n: int) -> Axis:
    """Return the axis whose `n` positions, or the edges around them, are in a dataset."""
    if getattr(values, "shape", None) not in ((n,), (n + 1,)) or values.dtype.kind not in "iuf":
        return Axis(name=name)
    positions = values[()].astype(np.float64)  # sums of small integers would overflow
    if positions.size > n:
        positions = (positions[1:] + positions[:-1]) / 2
    return axis_of_values(name, positions, text(values.attrs.get("units")))


def _nexus_axis(group: Any, dataset: Any, dim: int, n: int) -> Axis | None:
    """Return the axis that an NXdata group has for a dimension of a dataset.

    The attribute `axes` of the group, in older files of the dataset, has a name for each dimension.
    The attribute ``{name}_indices`` of the group, if it is there, says which dimension it is.
    """
    for owner in (group, dataset):
        names = texts(owner.attrs.get("axes"))
        if len(names) == 1 and names[0] not in group:
            names = [name for name in re.split(r"[:,\s\[\]]+", names[0]) if name]
        for position, name in enumerate(names):
            indices = np.ravel(group.attrs.get(f"{name}_indices", position))
            if name not in ("", ".") and np.array_equal(indices, [dim]):
                return _axis_of_dataset(name, _get(group, name), n)
        if names:
            return None
    return None
