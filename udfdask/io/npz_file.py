"""Write computed results to an .npz file, completely or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np

from udfdask.errors import ArgumentTypeError
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, variables_by_name
from udfdask.io.npz_results import npz_members
from udfdask.writing import NPZ, check_target, replacing


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
