"""Point 32: what each optional class attribute promises."""

import functools
import re
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC, compute, make, mask_of


@pytest.mark.point(32)
def test_contiguous_nav_gives_origins(x):
    def process_tile(self, tile):
        start = self.meta.slice.origin[0]
        self.results.v[:] = np.arange(start, start + len(tile))

    buffers = {"v": {"kind": "nav", "dtype": "int64"}}
    udf = make(buffers, process_tile=process_tile, contiguous_nav=True)()
    assert compute(x, udf).raw["v"].tolist() == list(range(24))
    with pytest.raises(ud.UDFError, match=r"this slice has no origin"):
        compute(x, make(buffers, process_tile=process_tile)())


@pytest.mark.point(32)
@pytest.mark.parametrize("roi", [None, mask_of(np.s_[1:, 2:5], (0, 0), (0, 2))])
def test_contiguous_partitions_are_parts_of_chunks(x, roi):
    """Only the UDF that asks for it gets a chunk in several pieces."""
    calls = {"asks": 0, "beside": 0}

    def numbered(self, partition):
        calls["asks"] += 1
        start = self.meta.slice.origin[0]
        self.results.v[:] = np.arange(start, start + len(partition))

    def whole(self, partition):
        calls["beside"] += 1
        assert len(partition) == self.meta.partition_shape.nav[0]
        self.results.v[:] = len(partition)

    rows = {"v": {"kind": "nav", "dtype": "int64"}}
    asks = make(rows, process_partition=numbered, contiguous_nav=True)()
    beside = make(rows, process_partition=whole)()
    n = 24 if roi is None else np.count_nonzero(roi)
    done, _ = compute(x.rechunk((2, 3, 3, 5)), [asks, beside], roi=roi)
    assert done.raw["v"].tolist() == list(range(n))
    assert calls["beside"] == 4
    assert calls["asks"] > 4
    assert compute(x.rechunk((1, 6, 3, 5)), asks).raw["v"].tolist() == list(range(24))


@pytest.mark.point(32)
@pytest.mark.parametrize("method", ["process_frame", "process_tile", "process_partition"])
def test_writable_input(values, method):
    x = da.from_array(values, chunks=(2, 6, 3, 5))

    def process(self, data):
        assert data.flags.writeable
        data *= 0
        self.results.v[:] = data.sum()

    def look(self, data):
        assert not data.flags.writeable
        self.results.v[:] = 1 + data.max()

    writes = make({"v": {"kind": "nav"}}, writable_input=True, **{method: process})()
    looks = make({"v": {"kind": "nav"}}, **{method: look})()
    kept = values.copy()
    first, second = ud.compute(*ud.run_udf(x, [writes, looks]), **SYNC)
    assert (first["v"] == 0).all()
    assert (second["v"][-1] > 1).all()
    np.testing.assert_array_equal(values, kept)


# contiguous_nav


@pytest.mark.point(32)
@pytest.mark.parametrize("roi", [None, mask_of(np.s_[1:, 2:5], (0, 0), (0, 2))])
@pytest.mark.parametrize("depth", [2, np.inf])
def test_contiguous_tiles_in_company(x, roi, depth):
    """What a UDF beside it sees is cut in the same way; no row is lost."""
    rows = {"v": {"kind": "nav", "dtype": "int64"}}

    def process_tile(self, tile):
        start = self.meta.slice.origin[0]
        self.results.v[:] = np.arange(start, start + len(tile))

    def by_index(self, tile):
        (index,) = self.meta.slice.get(nav_only=True)
        self.results.v[:] = np.arange(24)[index]

    asks = make(
        rows,
        process_tile=process_tile,
        contiguous_nav=True,
        get_tiling_preferences=lambda self: {"depth": depth},
    )()
    beside = make(rows, process_tile=by_index)()
    n = 24 if roi is None else np.count_nonzero(roi)
    for done in compute(x, [asks, beside], roi=roi):
        assert done.raw["v"].tolist() == list(range(n))


# split_every


def counting_merges(**attributes):
    """A UDF with a merge that notes how many partials each of its nodes takes."""
    nodes: list[int] = []

    def merge(self, dest, src):
        if not self.meta.get_valid_nav_mask().any():  # the first partial of a node
            nodes.append(0)
        nodes[-1] += 1
        dest.v += src.v

    udf = make(
        {"v": {"kind": "single", "dtype": "int64"}},
        process_frame=lambda self, frame: setattr(self.results, "v", self.results.v + 1),
        merge=merge,
        **attributes,
    )
    return udf(), nodes


@pytest.mark.point(32)
@pytest.mark.parametrize(
    ("attribute", "argument", "expected"),
    [
        (None, None, [8, 8, 2]),
        (None, 4, [4, 4, 4, 4, 4]),
        (4, None, [4, 4, 4, 4, 4]),
        (4, 2, [4, 4, 4, 4, 4]),
        (2, False, [2] * 15),
        (False, None, [16]),
        (False, 2, [16]),
    ],
)
def test_split_every(attribute, argument, expected):
    """The fan-in of the class wins over that of the call."""
    x = da.ones((16, 3, 5), chunks=(1, 3, 5), dtype="float32")
    udf, nodes = counting_merges(split_every=attribute)
    assert compute(x, udf, split_every=argument)["v"] == 16
    assert sorted(nodes) == sorted(expected)


# merge_assigns_nav


@pytest.mark.point(32)
def test_merge_assigns_nav_gets_the_tree():
    """Beside nav buffers a merge runs as a chain, unless they are only assigned."""
    x = da.ones((16, 3, 5), chunks=(1, 3, 5), dtype="float32")

    def merge(self, dest, src):
        np.copyto(dest.n, src.n)
        dest.o += src.o

    def process_frame(self, frame):
        self.results.n = self.meta.coordinates[0, 0]
        self.results.o += 1

    buffers = {"n": {"kind": "nav"}, "o": {"kind": "single"}}
    methods = {"merge": merge, "process_frame": process_frame}
    depths = {}
    for assigns in (False, True):
        lazy = ud.run_udf(x, make(buffers, merge_assigns_nav=assigns, **methods)(), split_every=2)
        done = lazy.compute(**SYNC)
        np.testing.assert_array_equal(done["n"], np.arange(16))
        assert done["o"] == 16
        depths[assigns] = longest_path(lazy["o"])
    assert depths[False] - depths[True] >= 16 - 4 - 1


def longest_path(array):
    """Number of tasks on the longest path through the graph of an array."""
    tasks = dict(array.__dask_graph__())

    @functools.cache
    def length(key):
        below = [d for d in getattr(tasks[key], "dependencies", ()) if d in tasks]
        return 1 + max(map(length, below), default=0)

    return max(map(length, tasks))


# elementwise_results


@pytest.mark.point(32)
@pytest.mark.parametrize("whole", [False, True])
def test_elementwise_results_run_chunk_by_chunk(x, values, whole):
    """And get the rows of their chunk, with the merged sig and single buffers at hand."""
    sizes = []

    def process_frame(self, frame):
        self.results.n = frame.sum()
        if whole:
            self.results.o += frame.sum()

    def merge(self, dest, src):
        dest.n[:] = src.n
        dest.o += src.o

    def get_results(self):
        sizes.append(len(self.results.n))
        assert len(self.meta.coordinates) == sizes[-1]
        total = self.results.o[0] if whole else 1.0
        return {"share": self.results.n / total}

    buffers = {"n": {"kind": "nav"}, "share": {"kind": "nav", "use": "result_only"}}
    if whole:
        buffers["o"] = {"kind": "single"}
    methods = {"process_frame": process_frame, **({"merge": merge} if whole else {})}
    sums = values.sum(axis=(2, 3))
    for elementwise, expected in ((True, [4, 4, 8, 8]), (False, [24])):
        udf = make(buffers, elementwise_results=elementwise, get_results=get_results, **methods)()
        lazy = ud.run_udf(x, udf)
        assert lazy["share"].chunks == x.chunks[:2]
        done = lazy.compute(**SYNC)
        np.testing.assert_allclose(done["share"], sums / (sums.sum() if whole else 1), rtol=1e-5)
        assert sorted(sizes) == expected
        sizes.clear()


@pytest.mark.point(32)
def test_one_block_of_elementwise_results_needs_one_chunk(x):
    """Without merged buffers the other chunks are not processed."""
    seen = []
    udf = make(
        {"n": {"kind": "nav"}},
        process_tile=lambda self, tile: seen.append(len(tile)),
        get_results=lambda self: {"n": self.results.n + 1},
        elementwise_results=True,
    )()
    lazy = ud.run_udf(x, udf)
    assert lazy["n"].blocks[1, 1].compute(**SYNC).tolist() == [[1, 1], [1, 1]]
    assert seen == [4]


# writable_input


@pytest.mark.point(32)
def test_writable_input_is_private(values):
    """Two UDFs that both write do not see each other's writing, nor does the array change."""
    x = da.from_array(values, chunks=(2, 6, 3, 5)).persist(**SYNC)

    def process_tile(self, tile):
        tile += self.params.by
        self.results.v[:] = tile.mean(axis=(1, 2))

    cls = make({"v": {"kind": "nav"}}, process_tile=process_tile, writable_input=True)
    first, second = compute(x, [cls(by=1), cls(by=10)])
    means = values.mean(axis=(2, 3))
    np.testing.assert_allclose(first["v"], means + 1, rtol=1e-6)
    np.testing.assert_allclose(second["v"], means + 10, rtol=1e-6)
    np.testing.assert_array_equal(x.compute(**SYNC), values)


# whole_frames


@pytest.mark.point(32)
@pytest.mark.parametrize("sig_chunks", [(3, 5), (2, 3)])
@pytest.mark.parametrize("roi", [None, mask_of(np.s_[1:, 2:5], (0, 0))])
def test_whole_frames(values, sig_chunks, roi):
    """Tiles are stacks of whole frames, bounded, also where the signal is chunked."""
    x = da.from_array(values, chunks=(2, 4, *sig_chunks))
    depths = set()

    def process_tile(self, tile):
        assert tile.shape[1:] == SIG
        assert len(self.meta.tiling_scheme) == 1
        assert self.meta.sig_slice.get() == (slice(0, 3), slice(0, 5))
        np.testing.assert_array_equal(tile, values[tuple(self.meta.coordinates.T)])
        depths.add(len(tile))
        self.results.v[:] = np.median(tile, axis=(1, 2))  # not a sum over parts

    udf = make({"v": {"kind": "nav"}}, process_tile=process_tile, whole_frames=True)()
    with dask.config.set({"udfdask.tile-bytes": 3 * 60}):
        done = compute(x, udf, roi=roi)
    chosen = np.ones(NAV, dtype=bool) if roi is None else roi
    np.testing.assert_array_equal(done.raw["v"], np.median(values, axis=(2, 3))[chosen])
    assert max(depths) == 3


@pytest.mark.point(32)
def test_whole_frames_larger_than_a_tile(x):
    """One at a time, rather than in parts."""
    shapes = set()
    udf = make(
        {"v": {"kind": "nav"}},
        process_tile=lambda self, tile: shapes.add(tile.shape),
        whole_frames=True,
    )()
    with dask.config.set({"udfdask.tile-bytes": 8}):
        compute(x, udf)
    assert shapes == {(1, *SIG)}


@pytest.mark.parametrize("names", [(), ("v", "not_declared"), ["v"]])
def test_keeps_units(x, names):
    """Labeled results named there have the unit of the data."""
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    pytest.importorskip("udfdask.xarray")
    buffers = {"v": {"kind": "nav"}, "w": {"kind": "nav"}}
    udf = make(buffers, process_frame=lambda self, frame: None, keeps_units=names)()
    array = xr.DataArray(x, attrs={"units": "counts", "beam": 200})
    found = array.udf.run_udf(udf)
    assert found["v"].attrs.get("units") == ("counts" if "v" in names else None)
    assert found["w"].attrs == {"beam": 200}


@pytest.mark.usefixtures("warns_of_few_data")
def test_promises(values):
    """A UDF that promises `adds_signal_parts` runs one of many signal chunks at a time."""

    def process_tile(self, tile):
        self.results.v += tile.sum(axis=(1, 2))

    declared = {"v": {"kind": "nav", "dtype": "float64"}}
    promising = make(
        declared, process_tile=process_tile, promises=ud.Promises(adds_signal_parts=True)
    )()
    array = da.from_array(values, chunks=(*NAV, 1, 2))
    np.testing.assert_allclose(compute(array, promising)["v"], values.sum(axis=(2, 3)))
    with pytest.warns(ud.UDFWarning, match="cannot process one signal chunk at a time"):
        compute(array, make(declared, process_tile=process_tile)())


@pytest.mark.point(32)
def test_default_plots_are_drawn(x):
    pytest.importorskip("matplotlib")
    buffers = {"a": {"kind": "nav"}, "b": {"kind": "nav"}}
    methods = {"process_frame": lambda self, frame: None}
    for shown, titles in (((), ["a", "b"]), (("b",), ["b"])):
        figure = ud.run_udf(x, make(buffers, default_plots=shown, **methods)()).plot()
        assert [t for axes in figure.axes if (t := axes.get_title("left"))] == titles
    figure = ud.run_udf(x, make(buffers, default_plots=("b",), **methods)()).plot("a")
    assert figure.axes[0].get_title("left") == "a"
    with pytest.raises(ud.ArgumentTypeError, match="default_plots must be a tuple of names"):
        ud.run_udf(x, make(buffers, default_plots="b", **methods)())


@pytest.mark.point(32)
def test_calibrated_parameters_are_in_pixels(x):
    class Spot(ud.UDF):
        calibrated = {"r": "length", "place": "position", "down": "height"}

        def get_result_buffers(self):
            return {"seen": self.buffer(kind="nav", dtype="float64", extra_shape=(4,))}

        def process_frame(self, frame):
            p = self.params
            self.results.seen[:] = [p.r, *p.place, p.down]

    axes = [ud.Axis(name=name, unit="mrad", scale=0.5, offset=-1.0) for name in "abcd"]
    udf = Spot(r="2 mrad", place=("1 mrad", 3), down=(1500, "urad"))
    found = ud.run_udf(x, udf, axes=axes[: x.ndim])["seen"].compute()
    np.testing.assert_array_equal(found[(0,) * (x.ndim - 2)], [4, 4, 3, 3])
    wrong = make({}, calibrated={"r": "wide"}, process_frame=lambda self, frame: None)
    with pytest.raises(ud.ArgumentTypeError, match="calibrated must be a dictionary"):
        ud.run_udf(x, wrong())


@pytest.mark.point(32)
@pytest.mark.parametrize("halo", [1, (0, 2), ((1, 0), 1)])
def test_halo(halo):
    """A window of frames around each position; tests/laws/test_neighborhoods.py has the laws."""

    class Window(ud.UDF):
        def __init__(self):
            super().__init__()
            self.halo = halo

        def get_result_buffers(self):
            return {"frames": self.buffer(kind="nav", dtype="int64")}

        def process_neighborhood(self, frames):
            self.results.frames[:] = frames.any(axis=(2, 3)).sum()

    data = np.ones((3, 4, 2, 2), dtype="uint8")
    result = ud.run_udf(da.from_array(data, chunks=(2, 3, 2, 2)), Window())["frames"].compute()
    sides = (halo, halo) if isinstance(halo, int) else halo
    pairs = [side if isinstance(side, tuple) else (side, side) for side in sides]
    counts = [
        [sum(0 <= p + d < n for d in range(-a, b + 1)) for p in range(n)]
        for n, (a, b) in zip((3, 4), pairs, strict=True)
    ]
    np.testing.assert_array_equal(result, np.multiply.outer(*counts))


@pytest.mark.point(32)
def test_every_attribute_has_a_how_to():
    """A section of its own on the page of class attributes, and a test that is named after it."""
    attributes = {
        name
        for name, value in vars(ud.UDF).items()
        if name.islower()
        and not name.startswith("_")
        and (value in (None, False, ()) or value == {} or value == ud.Promises())
    }
    assert len(attributes) >= 7
    page = (
        Path(__file__).resolve().parents[3]
        / "docs"
        / "user-guide"
        / "writing"
        / "class-attributes.md"
    )
    sections = re.findall(r"^## (\w+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(sections) == attributes
    for name in attributes:
        assert any(name.removesuffix("_nav") in test for test in globals()), name
