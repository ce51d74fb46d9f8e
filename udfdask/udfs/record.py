"""Writes the data to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.buffers import BufferSpec
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udf import UDF
from udfdask.udfs.npy_rows import NpyRows


class RecordUDF(UDF):
    """Write the frames, as UDFs see them, to an .npy file.

    Parameters
    ----------
    filename : str or path-like
        The file, which is overwritten if there is one. Its folder must exist. A relative name
        means what it means where the UDF is made; on a cluster all workers must share the folder.

    Raises
    ------
    ArgumentTypeError
        If `filename` is no path.
    ArgumentValueError
        In `run_udf`, if `filename` is a folder, or its folder does not exist.

    Notes
    -----
    It has no buffers. Building a run writes nothing; all tasks write to the file, each its frames,
    whenever the `Result` or another result of the same run is computed. The array in the file has
    the dtype of the data, and with corrections that of corrected data; its shape is (*nav, *sig),
    or with a region of interest (frames in it, *sig), in the order of the flattened scan. Nothing
    is written where there is no frame.

    A run that fails leaves a file in which some rows are missing: 0, or what was there before. It
    may not be the file that the data come from.

    Examples
    --------
    >>> import tempfile, dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import RecordUDF
    >>> x = da.arange(4 * 4 * 2 * 2, chunks=16).reshape(4, 4, 2, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = f"{folder}/frames.npy"
    ...     done = ud.run_udf(x, RecordUDF(name), roi=(1, 2)).compute()
    ...     np.load(name)
    array([[[24, 25],
            [26, 27]]])
    """

    whole_frames = True
    _declares_once = True
    _starts_no_threads = True

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        try:
            path = os.fspath(filename)
        except TypeError:
            path = None
        if not isinstance(path, str):
            raise ArgumentTypeError(f"filename must be a path, such as 'a.npy', not {filename!r}")
        super().__init__(filename=str(Path(path).absolute()))

    def get_preferred_input_dtype(self) -> Any:
        """Return that the data are wanted as they are."""
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare nothing; look whether there may be such a file."""
        path = Path(self.params.filename)
        if path.is_dir():
            raise ArgumentValueError(f"filename is a folder, {path}: name a file in it")
        if not path.parent.is_dir():
            raise ArgumentValueError(
                f"there is no folder {path.parent} for {path.name}: make it first"
            )
        return {}

    def get_task_data(self) -> Mapping[str, Any]:
        """Open the file."""
        shape, roi = self.meta.dataset_shape, self.meta.roi
        nav = tuple(shape.nav) if roi is None else (int(np.count_nonzero(roi)),)
        full = (*nav, *shape.sig)
        dtype = self.meta.input_dtype
        return {"file": NpyRows(self.params.filename, full, shape.sig_dims, dtype)}

    def process_tile(self, tile: Any) -> None:
        """Write frames to their rows."""
        (rows,) = self.meta.slice.get(nav_only=True)
        self.task_data.file.write(rows, tile)

    def cleanup(self) -> None:
        """Close the file."""
        self.task_data.file.close()
