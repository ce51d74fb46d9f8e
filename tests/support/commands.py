"""Runs udfdask's commands as a terminal does, and reads the tables and files that they make."""

import os
import subprocess
import sys

import numpy as np
from click.testing import CliRunner

from making import LATE
from udfdask.cli import main


def call(*args, code=0):
    """Run a command; what it prints, all of it on one line if it failed."""
    outcome = CliRunner().invoke(main, [str(arg) for arg in args])
    assert outcome.exit_code == code, outcome.output
    if code == 0:
        return outcome.output
    assert isinstance(outcome.exception, SystemExit)
    assert "Traceback" not in outcome.output
    return " ".join(outcome.output.split())


def run_program(*args, folder="."):
    """Run a command as a program of its own in a folder, in which its modules may be."""
    return subprocess.run(
        [sys.executable, "-m", "udfdask", *map(str, args)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=LATE,
    )


def results_of(*options):
    """The results of a run over scan.npy in the working folder, by their names in a file."""
    call("run", "scan.npy", *options, "--chunks", "3,4,-1,-1", "--out", "out.npz", "--overwrite")
    with np.load("out.npz") as arrays:
        return dict(arrays)


def tables(output):
    """The lines of all tables as lists of cells, without the headers."""
    lines = [
        [cell.strip() for cell in line.split("  ") if cell.strip()] for line in output.splitlines()
    ]
    return [line[:8] for line in lines if len(line) in (8, 9) and line[0] != "udf"]


def line_of(output, *cells):
    """The line of a table that starts with these cells."""
    (line,) = [line for line in tables(output) if line[: len(cells)] == list(cells)]
    return line


def write_with_axes(path, values, axes):
    """Write an HDF5 file with dimension scales."""
    import h5py

    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", data=values)
        for place, axis, size in zip(data.dims, axes, values.shape, strict=True):
            scale = file.create_dataset(axis.name, data=axis.positions(size))
            scale.make_scale(axis.name)
            scale.attrs["units"] = axis.unit
            place.label = axis.name
            place.attach_scale(scale)
        data.attrs["units"] = "counts"
    return path
