"""Writes the data to a file."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.npy_rows import KeptRows, NpyRows

if TYPE_CHECKING:
    from udfdask.writing import Target

_NO_FILE = np.iinfo(np.uint64).max


class RecordUDF(UDF):
    """Write the frames, as UDFs see them, to an .npy file.

    Parameters
    ----------
    filename : str or path-like
        The file. Its folder must exist. A relative name means what it means where the UDF is made;
        on a cluster all workers must share the folder.
    overwrite : bool
        Replace an .npy file that is there already. Other files, and the file that the data are
        read from, are never replaced.
    _part : str, optional
        Name of the hidden file, which a run chooses itself.

    Raises
    ------
    ArgumentTypeError
        If `filename` is no path.
    ArgumentValueError
        In `run_udf`, if it is the file that the data are read from, also by another name, or if
        two UDFs of the run write to it.
    FileExistsError
        In `run_udf`, if there is something that may not, or must not, be replaced.
    OSError
        In `run_udf`, if there is no such folder, or nothing can be written there.

    Notes
    -----
    Building a run writes nothing. All tasks write, each its frames, to a hidden file next to
    `filename`, which takes that name when the last of them is done: so `filename` is absent, or
    what it was before, or complete. This is the case once the `Result` of this UDF has been
    computed; with `run_udf_iter`, once ``.buffers`` of the last snapshot has been read. If only
    other results of the same run are computed, or the run fails, the hidden file is left; a later
    run to the same `filename` removes it when nothing has been written to it for a day.

    Its only result ``frames`` is the number of frames that have been written. The array in the file
    has the dtype of the data, and with corrections that of corrected data; its shape is
    (*nav, *sig), or with a region of interest (frames in it, *sig), in the order of the flattened
    scan. Nothing is written where there is no frame.

    When the same lazy result is computed a second time without `overwrite`, the frames are compared
    with those in the file, which stays as it is.

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
    promises = Promises(declares_once=True, merge_only_reads_src=True, starts_no_threads=True)

    def __init__(
        self,
        filename: str | os.PathLike[str],
        overwrite: bool = False,
        _part: str | None = None,
    ) -> None:
        try:
            path = os.fspath(filename)
        except TypeError:
            path = None
        if not isinstance(path, str):
            raise ArgumentTypeError(f"filename must be a path, such as 'a.npy', not {filename!r}")
        if not isinstance(overwrite, bool):
            raise ArgumentTypeError(f"overwrite must be True or False, not {overwrite!r}")
        # addresses are refused in the plan, by the name that was given
        if "://" not in path:
            with contextlib.suppress(RuntimeError):  # ~nobody
                path = str(Path(path).expanduser().absolute())
        super().__init__(filename=path, overwrite=overwrite, _part=_part)

    def _targets(self, sources: Sequence[str]) -> Sequence[Target]:
        """Return the file that is written, checked."""
        from udfdask.writing import NPY, check_target

        overwrite = self.params.overwrite
        return [check_target(self.params.filename, NPY, overwrite=overwrite, sources=sources)]

    def _for_run(self) -> UDF:
        """Return the same with a hidden file of its own: two runs never write to the same."""
        from udfdask.writing.scratch import part_path

        part = part_path(self._target.path)
        return type(self)(**{**self._kwargs, "_part": str(part)})

    def get_preferred_input_dtype(self) -> Any:
        """Use the dtype of the data."""
        return self.USE_NATIVE_DTYPE

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the number of frames, and which file they have been written to."""
        file = self.buffer(kind="single", dtype="uint64", use="private")
        return {
            "frames": self.buffer(kind="single", dtype="int64"),
            "lowest_file": file,
            "highest_file": file,
            "files_made": self.buffer(kind="single", dtype="int64", use="private"),
        }

    def get_task_data(self) -> Mapping[str, Any]:
        """Open the hidden file."""
        shape, dtype = self.meta.dataset_shape, self.meta.input_dtype
        full = (*self._scan, *shape.sig)
        part = self._part
        kept = not part.exists() and self._target.path.exists() and not self.params.overwrite
        make = KeptRows if kept else NpyRows
        path = self._target.path if kept else part
        return {"file": make(str(path), full, shape.sig_dims, dtype)}

    def preprocess(self) -> None:
        """Start from no frame."""
        self.results.lowest_file[:] = _NO_FILE

    def process_tile(self, tile: Any) -> None:
        """Write frames to their rows."""
        (rows,) = self.meta.slice.get(nav_only=True)
        self.task_data.file.write(rows, tile)
        self.results.frames[:] += len(tile)

    def postprocess(self) -> None:
        """Note which file the frames are in."""
        self.results.files_made[:] = self.task_data.file.is_new
        self.results.lowest_file[:] = self.results.highest_file[:] = self.task_data.file.number

    def cleanup(self) -> None:
        """Close the file."""
        self.task_data.file.close()

    def merge(self, dest: Any, src: Any) -> None:
        """Count the frames."""
        dest.frames[:] += src.frames
        dest.files_made[:] += src.files_made
        dest.lowest_file[:] = np.minimum(dest.lowest_file, src.lowest_file)
        dest.highest_file[:] = np.maximum(dest.highest_file, src.highest_file)

    def get_results(self) -> Mapping[str, Any]:
        """Give the file its name, if it is complete."""
        frames = int(self.results.frames[0])
        if frames and frames == math.prod(self._scan):
            lowest, highest = int(self.results.lowest_file[0]), int(self.results.highest_file[0])
            # a file that is made after another was removed may get its number
            if lowest != highest or self.results.files_made[0] > 1:
                raise UDFError(
                    f"{self.params.filename} has not been written: while the run went on, the "
                    "hidden file for its frames was removed, or other parameters were given. Run "
                    "it again"
                )
            self._finish(lowest)
        return {"frames": self.results.frames}

    def _finish(self, number: int) -> None:
        """Take the number of a complete file; give it its name, unless it has it already."""
        from udfdask.writing.replacing import put_in_place

        part, target = self._part, self._target
        if part.exists() and part.stat().st_ino == number:
            with part.open("rb") as file:
                os.fsync(file.fileno())
            put_in_place(part, target, part.with_suffix(".old"))
        elif not target.path.exists() or target.path.stat().st_ino != number:
            raise UDFError(
                f"{self.params.filename} was replaced or removed while it was being written"
            )

    @property
    def _scan(self) -> tuple[int, ...]:
        """The shape of the scan, or the number of frames in the region of interest."""
        roi = self.meta.roi
        return tuple(self.meta.dataset_shape.nav) if roi is None else (int(roi.sum()),)

    @property
    def _part(self) -> Path:
        """The hidden file; one name for all runs that were not planned, as in `check_udf`."""
        from udfdask.writing.scratch import scratch_prefix

        real, given = self._target.path, self.params._part
        part = Path(given) if given else real.with_name(f"{scratch_prefix(real)}unplanned.part")
        if not part.name.startswith(scratch_prefix(real)):
            raise ArgumentValueError(
                "filename cannot change while a run goes on: start another run"
            )
        return part

    @property
    def _target(self) -> Target:
        """The file as it was checked in the plan."""
        from udfdask.writing import NPY, Target

        named = Path(self.params.filename)
        real = Path(os.path.realpath(named))
        return Target(named=named, path=real, kind=NPY, overwrite=self.params.overwrite)
