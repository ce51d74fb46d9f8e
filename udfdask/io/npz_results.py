"""Describe the arrays of an .npz file with results: dimensions, units and positions.

`numpy.load` shows every member of the archive as an array. So the descriptions are the comments of
the members, which it does not show.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, positions_in_file

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
