"""Write computed results to an .npz file, completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from udfdask.errors import ArgumentTypeError
from udfdask.io.named_variables import Variable, positions_in_file, variables_by_name
from udfdask.writing import NPZ, check_target, replacing


def write_npz(
    path: str | os.PathLike[str],
    results: Mapping[str, Mapping[str, Variable]],
    *,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write results to an .npz file that `numpy.load` reads.

    The file is written under another name next to `path` and then renamed, so that it is never
    incomplete. Of the axes, only the positions or labels along extra dimensions are written, for
    example the array ``radius``: `write_zarr` writes all axes, with units.

    Parameters
    ----------
    path : str or path-like
        Path of the file, usually with the suffix ``.npz``.
    results : mapping of str to mapping of str to Variable
        The buffers of each UDF, from `result_variables`. An array in the file has the name
        ``{udf}_{buffer}``.
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
        If `path` is not a local path, or it is one of `sources`, contains one, or is inside one.
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
    arrays = {name: variable.values for name, variable in variables.items()}
    for dim, (axis, positions) in positions_in_file(variables, ()).items():
        arrays[dim] = positions if axis.labels is None else positions.astype(str)
    with replacing(target) as unfinished, ZipFile(unfinished, "w") as archive:
        # not `numpy.savez`: an array cannot have the name of one of its parameters
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    return target.named
