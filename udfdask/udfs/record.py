"""Write the data to a file."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.format import MAGIC_PREFIX

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import BuiltInUDF, check_flag

if TYPE_CHECKING:
    from udfdask.base.targets import Target

_NO_FILE = np.iinfo(np.uint64).max
"""Neutral value of the lowest inode."""


class RecordUDF(BuiltInUDF):
    """Write the frames, as UDFs see them, to an .npy file.

    Parameters
    ----------
    filename : str or path-like
        Path of the file; its folder must exist. A relative path is relative to the working
        directory in which the UDF is created. On a cluster, all workers must share the folder.
    overwrite : bool
        Replace an existing .npy file. Other files, and the source file of the data, are never
        replaced.
    _part : str, optional
        Name of the hidden file; a run chooses it.

    Raises
    ------
    ArgumentTypeError
        If `filename` is not a path.
    ArgumentValueError, FileExistsError, OSError
        In `run_udf`, if `filename` is the source of the data, exists and must not be replaced, is
        written by two UDFs, or its folder does not exist or is not writable.

    Notes
    -----
    Tasks write to a hidden file next to `filename`, which is renamed after the last one: `filename`
    does not exist, or is unchanged, or is complete. It is complete after the `Result` of this UDF
    has been computed, or ``.buffers`` of the last snapshot has been read. If only other results of
    the run are computed, or if it fails, the hidden file remains; a later run with the same
    `filename` removes it after a day.

    The only result ``frames`` is the number of written frames. The array in the file has the dtype
    of the (corrected) data and the shape (*nav, *sig), or (frames, *sig) with a region of interest.
    If there is no frame, no file is written. If the same lazy result is computed again without
    `overwrite`, its frames are compared with the file, which does not change.

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
        self, filename: str | os.PathLike[str], overwrite: bool = False, _part: str | None = None
    ) -> None:
        path: Any = os.fspath(filename) if isinstance(filename, os.PathLike) else filename
        if not isinstance(path, str):
            raise ArgumentTypeError(f"filename must be a path, such as 'a.npy', not {filename!r}")
        overwrite = check_flag("overwrite", overwrite)
        # the plan refuses URLs; its message shows the name as the user wrote it
        if "://" not in path:
            with contextlib.suppress(RuntimeError):  # "~name" of an unknown user
                path = str(Path(path).expanduser().absolute())
        super().__init__(filename=path, overwrite=overwrite, _part=_part)

    def _targets(self, sources: Sequence[str]) -> Sequence[Target]:
        from udfdask.base.targets import check_target

        named, overwrite = self.params.filename, self.params.overwrite
        target = check_target(named, overwrite=overwrite, sources=sources)
        if target.path.exists():
            with target.path.open("rb") as file:
                if file.read(len(MAGIC_PREFIX)) not in (MAGIC_PREFIX, b""):
                    raise FileExistsError(
                        f"{target.named} is not an .npy file, so it is not replaced: choose "
                        "another name, or remove it yourself"
                    )
        return [target]

    def _for_run(self) -> UDF:
        """Return a copy with its own hidden file, so that two runs never write to the same file."""
        from udfdask.base.replacing import part_path

        return type(self)(**{**self._kwargs, "_part": str(part_path(self._target.path))})

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        file = self.buffer("single", dtype="uint64", use="private")
        made = self.buffer("single", dtype="int64", use="private")
        frames = self.buffer("single", dtype="int64")
        return {"frames": frames, "lowest_file": file, "highest_file": file, "files_made": made}

    def get_task_data(self) -> Mapping[str, Any]:
        """Open the hidden file, or the complete file of an earlier computation to compare with."""
        sig, dtype = self.meta.dataset_shape.sig, self.meta.input_dtype
        part, target = self._part, self._target.path
        kept = not part.exists() and target.exists() and not self.params.overwrite
        path = str(target if kept else part)
        return {"file": NpyRows(path, (*self._scan, *sig), len(sig), dtype, compare=kept)}

    def preprocess(self) -> None:
        self.results.lowest_file[:] = _NO_FILE

    def process_tile(self, tile: Any) -> None:
        (rows,) = self.meta.slice.get(nav_only=True)
        self.task_data.file.write(rows, tile)
        self.results.frames[:] += len(tile)

    def postprocess(self) -> None:
        """Store the inode of the file, and whether this task created it."""
        self.results.files_made[:] = self.task_data.file.is_new
        self.results.lowest_file[:] = self.results.highest_file[:] = self.task_data.file.number

    def cleanup(self) -> None:
        self.task_data.file.close()

    def merge(self, dest: Any, src: Any) -> None:
        dest.frames[:] += src.frames
        dest.files_made[:] += src.files_made
        dest.lowest_file[:] = np.minimum(dest.lowest_file, src.lowest_file)
        dest.highest_file[:] = np.maximum(dest.highest_file, src.highest_file)

    def get_results(self) -> Mapping[str, Any]:
        """Rename the file if it is complete."""
        frames = int(self.results.frames[0])
        if frames and frames == math.prod(self._scan):
            lowest, highest = int(self.results.lowest_file[0]), int(self.results.highest_file[0])
            # a new file can get the inode of a removed file, so created files are counted too
            if lowest != highest or self.results.files_made[0] > 1:
                raise UDFError(
                    f"{self.params.filename} has not been written: during the run, the hidden file "
                    "for its frames was removed, or the parameters were changed. Run it again"
                )
            self._finish(lowest)
        return {"frames": self.results.frames}

    def _finish(self, number: int) -> None:
        """Rename the complete file with an inode, unless it has its final name already."""
        from udfdask.base.replacing import put_in_place

        part, target = self._part, self._target
        if part.exists() and part.stat().st_ino == number:
            put_in_place(part, target)
        elif not target.path.exists() or target.path.stat().st_ino != number:
            raise UDFError(
                f"{self.params.filename} was replaced or removed while it was being written"
            )

    @property
    def _scan(self) -> tuple[int, ...]:
        """Shape of the scan, or the number of frames in the region of interest."""
        is_full = self.meta.roi is None
        return tuple(self.meta.dataset_shape.nav) if is_full else (self._count_frames(),)

    @property
    def _part(self) -> Path:
        """Path of the hidden file; runs without a plan, as in `check_udf`, share one name."""
        from udfdask.base.replacing import hidden_prefix

        real, name = self._target.path, self.params._part
        part = Path(name) if name else real.with_name(f"{hidden_prefix(real)}unplanned.part")
        if not part.name.startswith(hidden_prefix(real)):
            raise ArgumentValueError("filename cannot change during a run: start another run")
        return part

    @property
    def _target(self) -> Target:
        """The file, as the plan checked it."""
        from udfdask.base.targets import Target

        named = Path(self.params.filename)
        real = Path(os.path.realpath(named))
        return Target(named=named, path=real, is_store=False, overwrite=self.params.overwrite)


class NpyRows:
    """Open an .npy file for writing; create it, and correct its size and header, if necessary.

    Tasks need no lock: all tasks write the same size and header, and each task writes its own rows
    only. In a new file, rows that no task writes are 0. The shape is that of the array, a row has
    `sig_dims` axes. With `compare`, the file must be complete, and `write` only compares.
    """

    def __init__(
        self, path: str, shape: Sequence[int], sig_dims: int, dtype: Any, compare: bool = False
    ) -> None:
        self.is_new = False  # whether this object created the file
        self._path, self._dtype, self._compares = path, dtype, compare
        stream, descr = io.BytesIO(), np.lib.format.dtype_to_descr(dtype)
        parts = {"descr": descr, "fortran_order": False, "shape": tuple(map(int, shape))}
        np.lib.format.write_array_header_1_0(stream, parts)
        header = stream.getvalue()
        self._start = len(header)
        self._row = math.prod(shape[len(shape) - sig_dims :]) * dtype.itemsize
        size = self._start + math.prod(shape) * dtype.itemsize
        # unbuffered: a buffer would write back old bytes of rows that other tasks have written
        self._file = io.FileIO(path, "rb" if compare else "r+b", opener=self._open)
        has_size = os.fstat(self._file.fileno()).st_size == size
        if compare and not has_size:
            raise self._differs()
        if not has_size:
            self._file.truncate(size)
        if self._file.read(self._start) != header:
            self._put(0, memoryview(header))

    def _open(self, path: str, flags: int) -> int:
        """Open the file; if there is none, create an empty file and set `is_new`."""
        if not self._compares:
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                self.is_new = True
                return descriptor
        return os.open(path, flags)

    @property
    def number(self) -> int:
        """Inode of the file, which identifies it on its disk independent of its name."""
        return os.fstat(self._file.fileno()).st_ino

    def write(self, rows: slice | AnyArray, values: AnyArray) -> None:
        """Write rows from an array of shape (rows, ...); `rows` are their numbers in C order."""
        ends = [0, len(values)]
        if not isinstance(rows, slice):  # each stretch of consecutive rows
            ends[1:1] = (np.flatnonzero(np.diff(rows) != 1) + 1).tolist()
        for a, b in itertools.pairwise(ends):
            first = int(rows.start if isinstance(rows, slice) else rows[a])
            block = np.ascontiguousarray(values[a:b], dtype=self._dtype)
            self._put(self._start + first * self._row, block.reshape(-1).view(np.uint8).data)

    def _put(self, position: int, left: memoryview) -> None:
        """Write or compare bytes; the operating system may accept only a part of them at a time."""
        self._file.seek(position)
        while left:
            if not self._compares:
                left = left[self._file.write(left) :]
                continue
            piece = self._file.read(len(left))
            if not piece or piece != left[: len(piece)]:
                raise self._differs()
            left = left[len(piece) :]

    def _differs(self) -> FileExistsError:
        self._file.close()
        return FileExistsError(
            f"{self._path} already exists, with other frames: choose another name, or pass "
            "overwrite=True"
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()
