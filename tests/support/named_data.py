"""Data and UDFs whose names are compared between processes; run as a program, it prints them."""

import sys
from pathlib import Path

import dask
import dask.array as da
import numpy as np

import udfdask as ud
from udfdask.io import from_raw, open_file
from udfdask.records.data_names import DataNames
from udfdask.records.runs import find_runs, name_of_runs, names_of
from udfdask.udfs import ApplyMasksUDF, CoMUDF, SumUDF

MODULE = """
import udfdask as ud

SCALE = {scale}

def doubled(frame):
    return frame * SCALE

class Own(ud.UDF):
    def get_result_buffers(self):
        return {{"total": self.buffer("nav", dtype="float64")}}

    def process_frame(self, frame):
        self.results.total[:] = doubled(frame).sum()
"""


def scaled(block, by=3):
    return block * by


@dask.delayed
def made(number):
    return np.full((2, 3, 4), float(number))


def arrays(folder):
    """Arrays by name; the files in the folder stay as they are."""
    path = Path(folder, "scan.npy")
    if not path.exists():
        np.save(path, np.arange(4 * 4 * 3 * 4, dtype="u2").reshape(4, 4, 3, 4))
        path.with_suffix(".raw").write_bytes(bytes(range(192)))
    x = open_file(path, chunks=(2, 2, -1, -1)).array
    mapped = np.load(path, mmap_mode="r")
    return {
        "file": x,
        "other chunks": open_file(path, chunks=(1, 2, -1, -1)).array,
        "raw": from_raw(path.with_suffix(".raw"), nav_shape=(4, 4), sig_shape=(3, 4), dtype="u1"),
        "sliced": x[1:, ::2],
        "rechunked": x.rechunk((1, 1, 3, 2)),
        "function": x.map_blocks(scaled, dtype="u2"),
        "argument": x.map_blocks(scaled, by=4, dtype="u2"),
        "lambda": x.map_blocks(lambda block: block * 5, dtype="u2"),
        "ones": da.ones((4, 4, 3, 4), chunks=2),
        "zeros": da.zeros((4, 4, 3, 4), chunks=2),
        "in memory": da.from_array(np.arange(192.0).reshape(4, 4, 3, 4), chunks=2),
        "turned": da.from_array(np.arange(192.0).reshape(4, 3, 4, 4).swapaxes(1, 3), chunks=2),
        "no name": da.from_array(np.arange(192).reshape(4, 4, 3, 4), chunks=2, name=False),
        "mapped": da.from_array(mapped, chunks=2, name=False),
        "mapped part": da.from_array(mapped[1:], chunks=2, name=False),
        "random": da.random.default_rng(3).random((4, 4, 3, 4), chunks=2),
        "other random": da.random.default_rng(4).random((4, 4, 3, 4), chunks=2),
        "delayed": da.stack([da.from_delayed(made(k), (2, 3, 4), float) for k in range(3)]),
        "other delayed": da.stack([da.from_delayed(made(1), (2, 3, 4), float) for k in range(3)]),
        "chain": da.ones((3000, 1, 1), chunks=1).cumsum(axis=0),
        "persisted": x.persist(scheduler="synchronous"),
        "result": ud.run_udf(x, SumUDF(), roi=(0, 1))["intensity"],
    }


def runs(folder):
    """Runs by name."""
    x = arrays(folder)["file"]
    sys.path.insert(0, str(folder))
    import own_udf

    roi = np.zeros((4, 4), dtype=bool)
    roi[1, :3] = True
    return {
        "sum": ud.run_udf(x, SumUDF()),
        "roi": ud.run_udf(x, SumUDF(), roi=roi),
        "com": ud.run_udf(x, CoMUDF(cy=1.5)),
        "masks": ud.run_udf(x, ApplyMasksUDF(mask_factories=[lambda: np.eye(3, 4)])),
        "own": ud.run_udf(x, own_udf.Own()),
        "split": ud.run_udf(x, SumUDF(), split_every=2),
    }


def described(result):
    """The names of a run."""
    (run,) = find_runs([result])
    return names_of(run, DataNames()), name_of_runs([run], None)


if __name__ == "__main__":
    for name, array in arrays(sys.argv[1]).items():
        print(name, DataNames().name(array))  # noqa: T201
    for name, result in runs(sys.argv[1]).items():
        print(name, described(result))  # noqa: T201
