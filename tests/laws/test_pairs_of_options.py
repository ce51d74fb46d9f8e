"""Options of a run do not disturb each other: all pairs give what plain NumPy gives."""

import contextlib
import itertools
import tempfile
from dataclasses import dataclass, field

import dask
import dask.array as da
import numpy as np
import pytest
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from neighborhood_udfs import MODES, PartitionsUDF, WindowsUDF, expected
from suites import examples
from udfdask.corrections import CorrectionSet, Descan
from udfdask.io import with_sync_offset
from udfdask.testing import run_reference
from udfdask.testing.strategies import chunkings

# small chunks and empty regions are what is tested here
pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


class AnyBackend(ud.UDF):
    """Takes sparse data, too; weights each frame by aux data, if there are any."""

    def __init__(self, weights=None):
        super().__init__(weights=weights)

    def get_preferred_input_dtype(self):
        return np.float64

    def get_backends(self):
        return (self.BACKEND_NUMPY, self.BACKEND_SPARSE_COO, self.BACKEND_SCIPY_CSR)

    def weighted(self, frames):
        """A dense matrix (frames, pixels), weighted."""
        dense = np.asarray(frames.todense() if hasattr(frames, "todense") else frames)
        dense = dense.reshape((-1, dense.size // max(1, len(self.rows))))
        weights = 1 if self.params.weights is None else np.reshape(self.params.weights, (-1, 1))
        return dense * weights

    @property
    def rows(self):
        """The scan positions of the frames."""
        return self.meta.coordinates


class NavUDF(AnyBackend):
    """A sum of each frame, and its position, from tiles; no merge."""

    def get_result_buffers(self):
        nav = self.meta.dataset_shape.nav.dims
        return {
            "sum": self.buffer("nav", dtype="float64"),
            "position": self.buffer("nav", (nav,), dtype="int64"),
        }

    def process_tile(self, tile):
        self.results.sum[:] += self.weighted(tile).sum(axis=1)
        self.results.position[:] = self.rows


class SigUDF(AnyBackend):
    """The sum of all frames, one after another, with a merge."""

    def get_result_buffers(self):
        return {"total": self.buffer("sig", dtype="float64")}

    def process_frame(self, frame):
        self.results.total += self.weighted(frame).reshape(self.results.total.shape)

    def merge(self, dest, src):
        dest.total += src.total


class AllUDF(AnyBackend):
    """The largest pixel of each frame and of all, from partitions; `merge_all`."""

    def get_result_buffers(self):
        return {
            "largest": self.buffer("nav", dtype="float64"),
            "most": self.buffer("single", dtype="float64"),
        }

    def process_partition(self, partition):
        self.results.largest[:] = self.weighted(partition).max(axis=1)
        self.results.most[:] = self.results.largest.max(initial=0)

    def merge_all(self, ordered_results):
        parts = list(ordered_results.values())
        return {
            "largest": np.concatenate([part.largest for part in parts]),
            "most": np.max([part.most for part in parts], axis=0),
        }


@dataclass
class Run:
    """Arguments of a run, which options change, and what they mean in plain NumPy."""

    draw: object
    values: np.ndarray
    array: object
    options: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)
    present: np.ndarray | None = None
    roi: np.ndarray | None = None
    weights: np.ndarray | None = None
    aux: object = None
    halos: list = field(default_factory=list)
    cache: bool = False
    iterates: bool = False

    @property
    def nav(self):
        """The shape of the scan."""
        return self.values.shape[:2]

    def numbers(self, shape, least=-4, most=4):
        """Drawn whole numbers as floats."""
        seed = self.draw(st.integers(0, 99))
        return np.random.default_rng(seed).integers(least, most + 1, shape).astype(float)


def roi(run):
    """Some positions are selected, in any number of chunks."""
    share = run.draw(st.sampled_from([0.05, 0.3, 0.8]))
    run.roi = run.numbers(run.nav, 0, 99) < 100 * share
    run.options["roi"] = run.roi


def merge_small(run):
    """Chunks are joined."""
    run.options["merge_small"] = run.draw(st.integers(1, 2 * run.values.nbytes))


def halo(run):
    """UDFs see the frames around a position, some also those outside of the ROI."""
    side = st.integers(0, 3)
    for kind in (WindowsUDF, PartitionsUDF):
        sides = tuple(run.draw(st.tuples(side, side)) for _ in run.nav)
        run.halos.append((kind, sides, run.draw(st.sampled_from(sorted(MODES))), run.draw(FLAGS)))


def descan(run):
    """Frames are shifted, by whole pixels or parts of them, from lazy shifts or others."""
    subpixel = run.draw(FLAGS)
    shifts = run.numbers((*run.nav, 2), -3, 3) / (4 if subpixel else 1)
    if run.draw(FLAGS):
        shifts = da.from_array(shifts, chunks=run.draw(chunkings(shifts.shape)))
    run.options["descan"] = Descan(shifts, subpixel=subpixel)


def corrections(run):
    """The detector is corrected, and some of its pixels are patched."""
    sig = run.values.shape[2:]
    excluded = run.numbers(sig, 0, 9) < 2
    dark, gain = run.numbers(sig), 2 ** run.numbers(sig, -1, 1)
    run.options["corrections"] = CorrectionSet(dark=dark, gain=gain, excluded_pixels=excluded)


def aux(run):
    """Each frame has a weight, lazy or not."""
    run.weights = run.aux = run.numbers(run.nav, 1, 5)
    if run.draw(FLAGS):
        run.aux = da.from_array(run.weights, chunks=run.draw(chunkings(run.nav)))


def split_every(run):
    """Merges have another number of inputs."""
    run.options["split_every"] = run.draw(st.sampled_from([False, 2, 3]))


def backends(run):
    """UDFs get sparse data, or dense ones."""
    offered = ["numpy", "sparse.COO", "scipy.sparse.csr_matrix"]
    if run.halos:  # these UDFs take dense data only
        offered = [[name, "numpy"] for name in offered[1:]]
    run.options["backends"] = run.draw(st.sampled_from(offered))


def sparse_chunks(run):
    """Chunks are sparse."""
    run.array = run.array.map_blocks(sparse.COO.from_numpy)


def absent(run):
    """The first or last positions have no frame, see `make_run`."""


def cache(run):
    """Partial results are kept, and read by a second run."""
    run.cache = True


def tiles(run):
    """Tiles have few frames, or few pixels."""
    run.config["udfdask.tile-bytes"] = run.draw(st.sampled_from([1, 64, 200]))


def max_memory(run):
    """The memory of a run is predicted."""
    run.options["max_memory"] = "4 GB"


def iterates(run):
    """The run is a progressive one."""
    run.iterates = True


FLAGS = st.booleans()
OPTIONS = [
    absent,  # the first, because others change what it makes
    sparse_chunks,
    roi,
    merge_small,
    halo,
    descan,
    corrections,
    aux,
    split_every,
    backends,
    cache,
    tiles,
    max_memory,
    iterates,
]
PAIRS = list(itertools.combinations(OPTIONS, 2))
# halos and parts of chunks meet in the grid: three of these at a time
CLOSE = [roi, merge_small, halo, absent, descan]


def make_run(draw, options):
    """The arguments of a run with some options, over drawn data in drawn chunks."""
    shape = tuple(draw(st.tuples(*map(st.integers, (1, 1, 1, 1), (7, 7, 4, 4)))))
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 9, shape, "uint16")
    values *= values > 3
    chunks = draw(chunkings(shape))
    run = Run(draw, values, da.from_array(values, chunks=chunks))
    if absent in options:
        n, sig = shape[0] * shape[1], shape[2:]
        offset = draw(st.integers(1 - n, n - 1))
        frames = da.from_array(values.reshape(n, *sig), chunks=(draw(st.integers(1, n)), *sig))
        opened = with_sync_offset(frames, shape[:2], sync_offset=offset, chunks=chunks)
        run.values = np.zeros_like(values).reshape(n, *sig)
        run.values[max(0, -offset) : n - max(0, offset)] = values.reshape(n, *sig)[
            max(0, offset) : n + min(0, offset)
        ]
        run.values = run.values.reshape(shape)
        run.array, run.present = opened.array, opened.present
        run.options["axes"] = opened
    for option in OPTIONS:
        if option in options:
            option(run)
    return run


def udfs_of(run):
    """The UDFs of a run."""

    def weights(kind):
        return None if run.aux is None else kind.aux_data(run.aux, kind="nav", dtype="float64")

    return [
        *(kind(weights=weights(kind)) for kind in (NavUDF, SigUDF, AllUDF)),
        *(
            kind(sides, boundary, outside, weights(kind))
            for kind, sides, boundary, outside in run.halos
        ),
    ]


def expected_results(run):
    """The results of all UDFs, from changed frames in plain NumPy; NaN or 0 is not compared."""
    changes = {k: v for k, v in run.options.items() if k in {"corrections", "descan"}}
    nav = run.nav
    frames = run_reference(run.values, FramesUDF(), **changes)["frames"]
    present = np.ones(nav, bool) if run.present is None else run.present
    chosen = present if run.roi is None else run.roi & present
    weights = np.ones(nav) if run.weights is None else run.weights
    selected = frames[chosen] * weights[chosen][:, None, None]
    plain = [
        {"sum": selected.sum(axis=(1, 2)), "position": np.argwhere(chosen)},
        {"total": selected.sum(axis=0)},
        {"largest": selected.max(axis=(1, 2)), "most": np.max(selected, initial=0)},
    ]
    for _, sides, boundary, outside in run.halos:
        seen = present if outside else chosen
        found = expected(frames, 2, sides, boundary, chosen, values=run.weights, present=seen)
        window = {name: found[name][chosen] for name in ("weighted", "present")}
        plain.append({**window, "total": found["total"]})
    return plain, chosen


class FramesUDF(ud.UDF):
    """Each frame as UDFs see it."""

    def get_preferred_input_dtype(self):
        return np.float64

    def get_result_buffers(self):
        return {"frames": self.buffer("nav", (*self.meta.dataset_shape.sig,), dtype="float64")}

    def process_frame(self, frame):
        self.results.frames[:] = frame


def found_results(run):
    """The results of a run, and of another one that reads what the first one kept."""
    udfs = udfs_of(run)
    if run.iterates:
        *_, last = ud.run_udf_iter(run.array, udfs, **run.options)
        yield last.buffers
        return
    results = ud.run_udf(run.array, udfs, **run.options)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if run.cache:
            stack.enter_context(ud.cache(f"{folder}/cache"))
        for _ in range(1 + run.cache):
            yield ud.compute(*results, scheduler="synchronous")


def check(draw, options):
    """Compare the results of a run with some options with plain NumPy."""
    run = make_run(draw, options)
    wanted, chosen = expected_results(run)
    with dask.config.set(run.config):
        for found in found_results(run):
            for plain, result in zip(wanted, found, strict=True):
                for name, value in plain.items():
                    got = np.asarray(result[name])
                    is_nav = name not in {"total", "most"}
                    got = got[chosen] if is_nav else got
                    np.testing.assert_allclose(got, value, rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.full
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(o.__name__ for o in pair))
@given(data=st.data())
@settings(max_examples=examples(10))
def test_every_pair_of_options(pair, data):
    check(data.draw, pair)


@given(options=st.sets(st.sampled_from(OPTIONS), min_size=2, max_size=5), data=st.data())
@settings(max_examples=examples(200, 30))
def test_any_options_together(options, data):
    check(data.draw, options)


@given(options=st.sets(st.sampled_from(CLOSE), min_size=3), data=st.data())
@settings(max_examples=examples(200, 20))
def test_options_that_choose_frames(options, data):
    check(data.draw, options)
