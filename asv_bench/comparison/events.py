"""Event-sparse data: raw CSR files, described in TOML, and some of the frames in a dense file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from scipy.sparse import csr_array

from benchmarks.layouts import LAYOUTS, counts
from udfdask.io import from_raw, from_raw_csr

SIG = (256, 256)
LINE = 1024
"""Frames of a line of the scan, at most: 128 MiB if they are dense."""
KINDS = 4
"""Different lines; they come again and again."""
TYPES = {"indptr": "<i8", "indices": "<i4", "data": "<u2"}


@dataclass(frozen=True, kw_only=True)
class Events:
    """A data set in files, shape (lines, line, *SIG), uint16."""

    folder: Path
    lines: int
    """Number of lines."""
    line: int
    """Frames of a line."""
    dense_lines: int
    """How many of them, the first ones, are in a dense file as well."""

    @property
    def description(self) -> Path:
        """The TOML file."""
        return self.folder / "events.toml"

    @property
    def sparse(self) -> dict[str, Any]:
        """How LiberTEM loads the sparse frames."""
        return {"filetype": "raw_csr", "path": str(self.description)}

    @property
    def raw(self) -> dict[str, Any]:
        """How LiberTEM loads the dense frames."""
        shapes = {"nav_shape": (self.dense_lines, self.line), "sig_shape": SIG}
        return {"filetype": "raw", "path": str(self.folder / "dense.raw"), "dtype": "<u2", **shapes}

    @property
    def frames(self) -> int:
        """Number of frames."""
        return self.lines * self.line

    @property
    def entries(self) -> int:
        """Number of entries of all frames."""
        return (self.folder / "data.raw").stat().st_size // 2

    def open(self) -> da.Array:
        """Return the sparse frames."""
        files = {name: self.folder / f"{name}.raw" for name in TYPES}
        dtypes = {"data": "dtype", "indices": "indices_dtype", "indptr": "indptr_dtype"}
        return from_raw_csr(
            **files,
            nav_shape=(self.lines, self.line),
            sig_shape=SIG,
            **{dtypes[name]: dtype for name, dtype in TYPES.items()},
        )

    def open_part(self, chunks: int) -> da.Array:
        """Return the first sparse chunks."""
        part: da.Array = self.open().blocks[:chunks]
        return part

    def open_dense(self) -> da.Array:
        """Return the dense frames, mapped into memory."""
        nav = (self.dense_lines, self.line)
        return from_raw(self.folder / "dense.raw", nav_shape=nav, sig_shape=SIG, dtype="<u2")


def make_events(frames: int, dense_frames: int, folder: Path) -> Events:
    """Return event-sparse data of about so many frames, made if they are not there.

    About 1 % of the pixels have counts, most of them 1.
    """
    line = min(LINE, frames)
    lines = round(frames / line)
    dense_lines = min(lines, max(1, round(dense_frames / line)))
    folder = folder / f"events-{lines}-{line}-{dense_lines}"
    made = Events(folder=folder, lines=lines, line=line, dense_lines=dense_lines)
    if not made.description.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write(made)
    return made


def _write(made: Events) -> None:
    """Write the files, the description last."""
    first = counts(LAYOUTS["events"], made.line).astype("<u2")
    dense = [np.roll(first, 5 * kind, axis=-1) for kind in range(KINDS)]
    with (made.folder / "dense.raw").open("wb") as file:
        for k in range(made.dense_lines):
            dense[k % KINDS].tofile(file)
    rows = [csr_array(line.reshape(made.line, -1)) for line in dense]
    files = {name: (made.folder / f"{name}.raw").open("wb") for name in TYPES}
    np.zeros(1, TYPES["indptr"]).tofile(files["indptr"])
    before = 0
    for k in range(made.lines):
        line = rows[k % KINDS]
        parts = {"indptr": line.indptr[1:] + np.int64(before), "indices": line.indices}
        for name, values in {**parts, "data": line.data}.items():
            values.astype(TYPES[name]).tofile(files[name])
        before += line.nnz
    for file in files.values():
        file.close()
    text = [
        "[params]",
        'filetype = "raw_csr"',
        f"nav_shape = {json.dumps([made.lines, made.line])}",
    ]
    text += [f"sig_shape = {json.dumps(SIG)}", "[raw_csr]"]
    for name, dtype in TYPES.items():
        text += [f'{name}_file = "{name}.raw"', f'{name}_dtype = "{dtype}"']
    made.description.write_text("\n".join(text) + "\n")
