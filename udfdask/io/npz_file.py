"""Computed results into one .npz file, all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from udfdask.errors import ArgumentTypeError
from udfdask.io.named_variables import Variable, variable_name
from udfdask.writing import NPZ, check_target, replacing


def write_npz(
    path: str | os.PathLike[str],
    results: Mapping[str, Mapping[str, Variable]],
    *,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write results to an .npz file that `numpy.load` reads.

    The file is written under another name beside `path` and then renamed, so that there is never
    half of one. Axes and units are not kept: `write_zarr` keeps them.

    Parameters
    ----------
    path : str or path-like
        Where the file is to be, by custom ending in ``.npz``.
    results : mapping of str to mapping of str to Variable
        For each UDF its buffers, as `result_variables` makes them. The arrays in the file are
        called like the buffers, and ``{udf}_{buffer}`` where there are several UDFs.
    overwrite : bool
        Replace an .npz file that is there already. Other files are never replaced.
    sources : sequence of str or path-like
        Files and stores that the results come from: nothing is written over them, with
        `overwrite` neither.

    Returns
    -------
    pathlib.Path
        The file's absolute path.

    Raises
    ------
    FileExistsError
        If there is something at `path` and it may not, or must not, be replaced.
    FileNotFoundError
        If the folder that `path` is to be in does not exist.
    OSError
        If nothing can be written there, for example on a read-only disk.
    ArgumentValueError
        If `path` is no local path, or it is one of `sources`, contains one, or lies in one.
    ArgumentTypeError
        If a result holds Python objects.

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
    ...         print(arrays["intensity"][1])
    [3. 4. 5.]
    """
    target = check_target(path, NPZ, overwrite=overwrite, sources=sources)
    arrays = {
        variable_name(udf, buffer, alone=len(results) == 1): variable.values
        for udf, buffers in results.items()
        for buffer, variable in buffers.items()
    }
    for name, values in arrays.items():
        if values.dtype.hasobject:
            raise ArgumentTypeError(
                f"result {name!r} holds Python objects, which are not written to .npz files: "
                "leave this UDF out, or save its result yourself"
            )
    with replacing(target) as unfinished, ZipFile(unfinished, "w") as archive:
        # `numpy.savez` has parameters, after which no array can be called
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, values, allow_pickle=False)
    return target.named
