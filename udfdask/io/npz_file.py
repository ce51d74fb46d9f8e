"""Write results to .npz files with dimensions, axes, units and positions, and read them.

`numpy.load` shows every member of the archive as an array. So the descriptions are the comments of
the members, which it does not show.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from udfdask.errors import ArgumentTypeError
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, positions_in_file, variables_by_name
from udfdask.writing import NPZ, check_target, replacing

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What a file says about one of its arrays."""

    dims: Sequence[str]
    """Name of each dimension."""
    attrs: Mapping[str, str]
    """Attributes, such as the unit."""
    positions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Scale, offset and attributes of the dimensions with even positions, by their names."""
    is_result: bool = True
    """Whether this is a result; otherwise it holds the positions or labels along a dimension."""

    def comment(self) -> bytes:
        """Return the description as the comment of a member of an archive."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, comment: bytes) -> Member:
        """Return the description in a comment; raise if there is none."""
        return cls(**json.loads(comment))


def npz_members(
    variables: Mapping[str, Variable], axes: Sequence[Axis]
) -> dict[str, tuple[Array, Member]]:
    """Return the arrays of a file of results, and their descriptions, by name.

    Even positions along axes of the data are only in the descriptions.
    """
    of_data = {axis.name for axis in axes}
    even: dict[str, dict[str, Any]] = {}
    members: dict[str, tuple[Array, Member]] = {}
    for dim, (axis, positions) in positions_in_file(variables, axes).items():
        attrs = {"units": axis.unit} if axis.unit else {}
        if dim in of_data and axis.labels is None and axis.values is None:
            numbers = {"scale": np.asarray(axis.scale), "offset": np.asarray(axis.offset)}
            even[dim] = {**{key: n.item() for key, n in numbers.items()}, "attrs": attrs}
        else:
            values = positions if axis.labels is None else positions.astype(str)
            members[dim] = (values, Member(dims=(dim,), attrs=attrs, is_result=False))
    results = {
        name: (
            variable.values,
            Member(
                dims=variable.dims,
                attrs=dict(variable.attrs),
                positions={dim: even[dim] for dim in variable.dims if dim in even},
            ),
        )
        for name, variable in variables.items()
    }
    return {**results, **members}


def read_npz(file: Path) -> dict[str, tuple[Array, Member]] | None:
    """Return the arrays and descriptions of a file of results; None for another .npz file."""
    members = {}
    with ZipFile(file) as archive:
        for entry in archive.infolist():
            try:
                member = Member.of(entry.comment)
            except (ValueError, TypeError):
                return None
            with archive.open(entry) as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
            members[entry.filename.removesuffix(".npy")] = (array, member)
    return members


def write_npz(
    path: str | os.PathLike[str],
    results: Mapping[str, Mapping[str, Variable]],
    *,
    axes: Sequence[Axis] = (),
    attrs: Mapping[str, str] | None = None,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write results to an .npz file that `numpy.load` reads.

    The file is written under another name next to `path` and then renamed, so that it is never
    incomplete. For `numpy.load`, it contains the results, and positions or labels along extra
    dimensions, for example the array ``radius``. `open_results` also finds the names of dimensions,
    axes and units, which `numpy.load` does not show.

    Parameters
    ----------
    path : str or path-like
        Path of the file, usually with the suffix ``.npz``.
    results : mapping of str to mapping of str to Variable
        The buffers of each UDF, from `result_variables`. An array in the file has the name
        ``{udf}_{buffer}``.
    axes : sequence of Axis
        Axes of the dimensions.
    attrs : mapping of str to str, optional
        Attributes of the file.
    overwrite : bool
        Replace an existing .npz file. Other files are never replaced.
    sources : sequence of str or path-like
        Files and stores from which the results come. They are never replaced, even with
        `overwrite`.

    Returns
    -------
    pathlib.Path
        The absolute path of the file.

    Raises
    ------
    FileExistsError
        If something exists at `path` that must not be replaced.
    FileNotFoundError
        If the folder of `path` does not exist.
    OSError
        If writing is impossible, for example on a read-only disk.
    ArgumentValueError
        If a dimension has two different sizes; if `path` is not a local path, or it is one of
        `sources`, contains one, or is inside one.
    ArgumentTypeError
        If a result contains Python objects.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask.io import Variable, write_npz
    >>> image = Variable(dims=("y", "x"), values=np.arange(6.0).reshape(2, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = write_npz(Path(folder) / "out.npz", {"sum": {"intensity": image}})
    ...     with np.load(saved) as arrays:
    ...         print(arrays["sum_intensity"][1])
    [3. 4. 5.]
    """
    target = check_target(path, NPZ, overwrite=overwrite, sources=sources)
    variables = variables_by_name(results)
    for name, variable in variables.items():
        if variable.values.dtype.hasobject:
            raise ArgumentTypeError(
                f"result {name!r} contains Python objects, which are not written to .npz files: "
                "leave this UDF out, or save its result yourself"
            )
    members = npz_members(variables, axes)
    with replacing(target) as unfinished, ZipFile(unfinished, "w") as archive:
        # not `numpy.savez`: an array cannot have the name of one of its parameters
        archive.comment = json.dumps(dict(attrs or {})).encode()
        for name, (array, member) in members.items():
            entry = ZipInfo(f"{name}.npy")
            entry.comment = member.comment()
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    return target.named
