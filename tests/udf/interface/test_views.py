"""Points 9 and 10: views of the buffers, assignment to them, and their names."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC, compute, make

NAMES = ["count", "index", "data", "dtype", "keys", "items", "get", "get_buffer", "self", "class_"]


@pytest.mark.point(10)
def test_any_name(x):
    def process_frame(self, frame):
        for place, name in enumerate(NAMES):
            getattr(self.results, name)[:] = frame.sum() + place

    done = compute(x, make({n: {"kind": "nav"} for n in NAMES}, process_frame=process_frame)())
    assert list(done) == NAMES
    for place, name in enumerate(NAMES):
        np.testing.assert_allclose(done[name], x.sum(axis=(2, 3)).compute(**SYNC) + place)


@pytest.mark.point(10)
@pytest.mark.parametrize("split_every", [2, False])
def test_any_name_in_merge(x, split_every):
    def merge(self, dest, src):
        for name in NAMES:
            getattr(dest, name)[:] += getattr(src, name)

    def process_frame(self, frame):
        for name in NAMES:
            getattr(self.results, name)[:] += 1

    udf = make(
        {n: {"kind": "single", "dtype": "int64"} for n in NAMES},
        process_frame=process_frame,
        merge=merge,
    )
    done = compute(x, udf(), split_every=split_every)
    assert [int(done[name]) for name in NAMES] == [24] * len(NAMES)


@pytest.mark.point(10)
def test_forms_of_assignment(x):
    def process_frame(self, frame):
        self.results.a = frame.sum()
        self.results.b += frame.sum()
        self.results.c[:] = frame.sum()
        self.results.d[...] += frame.sum()
        np.add(self.results.e, frame.sum(), out=self.results.e)
        self.results.f[0] = frame.sum()

    done = compute(x, make({n: {"kind": "nav"} for n in "abcdef"}, process_frame=process_frame)())
    for name in "abcdef":
        np.testing.assert_array_equal(done[name], done["a"])
    np.testing.assert_allclose(done["a"], x.sum(axis=(2, 3)).compute(**SYNC))


@pytest.mark.point(10, 16)
def test_items_are_deprecated(x):
    def process_frame(self, frame):
        with pytest.warns(DeprecationWarning, match=r"results\['a'\] is deprecated, use results.a"):
            self.results["a"][:] = 2
        with pytest.warns(DeprecationWarning, match=r"b"), pytest.raises(KeyError, match=r"b"):
            self.results["b"]

    def merge(self, dest, src):
        assert "a" in dest
        assert "b" not in dest
        assert list(dest) == ["a"]
        with pytest.warns(DeprecationWarning, match=r"deprecated"):
            dest["a"][:] = src["a"]

    done = compute(x, make({"a": {"kind": "nav"}}, process_frame=process_frame, merge=merge)())
    assert done["a"].sum() == 48


@pytest.mark.point(9, 10, 11)
def test_views(x):
    extra = (2,)
    buffers = {
        "n": {"kind": "nav"},
        "ne": {"kind": "nav", "extra_shape": extra},
        "s": {"kind": "sig"},
        "se": {"kind": "sig", "extra_shape": extra},
        "o": {"kind": "single"},
        "oe": {"kind": "single", "extra_shape": extra},
        "late": {"kind": "single", "use": "result_only"},
    }
    seen = []

    def note(self, n, data):
        r = self.results
        assert r.late is None
        part = tuple(self.meta.sig_slice.shape)
        assert data.shape == ((*part,) if n is None else (n, *part))
        assert r.n.shape == ((1,) if n is None else (n,))
        assert r.ne.shape == (extra if n is None else (n, *extra))
        assert r.s.shape == part
        assert r.se.shape == part + extra
        assert r.s.flags.c_contiguous
        assert r.o.shape == (1,)
        assert r.oe.shape == extra
        whole = r.get_buffer("ne")
        assert (whole.kind, whole.dtype) == ("nav", np.float32)
        assert whole.data is whole.raw_data
        assert whole.data.shape == (*self.meta.partition_shape.nav, *extra)
        seen.append(n)

    methods = {
        "process_frame": lambda self, frame: note(self, None, frame),
        "process_tile": lambda self, tile: note(self, len(tile), tile),
        "process_partition": lambda self, partition: note(self, len(partition), partition),
    }
    for name, method in methods.items():
        cls = make(
            buffers,
            **{name: method},
            postprocess=lambda self: note(
                self, len(self.results.n), np.empty((len(self.results.n), *SIG))
            ),
            merge=lambda self, dest, src: None,
            get_results=lambda self: {"late": 1.0},
        )
        assert compute(x, cls())["late"] == 1
    assert seen


@pytest.mark.point(9)
@pytest.mark.parametrize("sig_chunks", [(3, 5), (2, 3)])
@pytest.mark.parametrize("extra", [(), (2,)])
def test_what_is_written_into_views_of_tiles_is_kept(values, sig_chunks, extra):
    """Signal views are contiguous, even where that takes a copy, and written back."""
    x = da.from_array(values, chunks=(2, 4, *sig_chunks))
    shapes = set()

    def process_tile(self, tile):
        view = self.results.s
        assert view.flags.c_contiguous
        assert view.shape == tile.shape[1:] + extra == tuple(self.meta.sig_slice.shape) + extra
        shapes.add(tile.shape[1:])
        view += tile.sum(axis=0).reshape(tile.shape[1:] + (1,) * len(extra))
        rows = tile.reshape(len(tile), -1).sum(axis=1)
        assert self.results.n.shape == (len(tile), *extra)
        self.results.n += rows.reshape((-1,) + (1,) * len(extra))

    udf = make(
        {"s": {"kind": "sig", "extra_shape": extra}, "n": {"kind": "nav", "extra_shape": extra}},
        process_tile=process_tile,
        merge=lambda self, dest, src: (
            setattr(dest, "s", dest.s + src.s) or setattr(dest, "n", src.n)
        ),
    )()
    with dask.config.set({"udfdask.tile-bytes": 24}):
        done = compute(x, udf)
    assert max(np.prod(shape) for shape in shapes) < 15
    axes = (..., *(None for _ in extra))
    expected = values.sum(axis=(0, 1))[axes], values.sum(axis=(2, 3))[axes]
    np.testing.assert_allclose(done["s"], np.broadcast_to(expected[0], SIG + extra))
    np.testing.assert_allclose(done["n"], np.broadcast_to(expected[1], NAV + extra))


@pytest.mark.point(10)
def test_forms_of_assignment_in_merge(x):
    def process_frame(self, frame):
        for name in "abcd":
            getattr(self.results, name)[...] += frame

    def merge(self, dest, src):
        kept = dest.a
        dest.a += src.a
        assert dest.a is kept
        dest.b = dest.b + src.b
        dest.c[:] += src.c
        with pytest.warns(DeprecationWarning, match=r"deprecated, use results\.d"):
            dest["d"] += src.d

    udf = make({n: {"kind": "sig"} for n in "abcd"}, process_frame=process_frame, merge=merge)()
    done = compute(x, udf, split_every=2)
    for name in "abcd":
        np.testing.assert_allclose(done[name], x.sum(axis=(0, 1)).compute(**SYNC))


@pytest.mark.point(10)
def test_items_can_be_assigned(x):
    def process_frame(self, frame):
        with pytest.warns(DeprecationWarning, match=r"results\['a'\] is deprecated"):
            self.results["a"] = 1
        with (
            pytest.warns(DeprecationWarning, match=r"b"),
            pytest.raises(ud.UDFError, match=r"no buffer 'b' to assign to"),
        ):
            self.results["b"] = 1

    assert compute(x, make({"a": {"kind": "nav"}}, process_frame=process_frame)())["a"].sum() == 24


ODD_NAMES = ["_arrays", "_specs", "_udf", "__x", "lambda", "merge", "kind", "raw", "é", "x1"]


@pytest.mark.point(10)
def test_odd_names(x):
    def process_frame(self, frame):
        for place, name in enumerate(ODD_NAMES):
            setattr(self.results, name, place)
            assert getattr(self.results, name).shape == (1,)

    def get_results(self):
        assert list(self.results) == ODD_NAMES
        return {"x1": self.results.get_buffer("x1").data * 2}

    udf = make(
        {n: {"kind": "nav"} for n in ODD_NAMES},
        process_frame=process_frame,
        get_results=get_results,
    )
    done = compute(x, udf())
    assert [done[name][0, 0] for name in ODD_NAMES] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 18]


@pytest.mark.point(10)
def test_the_whole_buffer(x):
    """By get_buffer, whatever part of it is at hand."""

    def process_frame(self, frame):
        whole = self.results.get_buffer("n")
        n = self.meta.partition_shape.nav[0]
        assert (whole.kind, whole.dtype, whole.extra_shape) == ("nav", np.dtype("i4"), (2,))
        assert whole.shape == whole.data.shape == whole.raw_data.shape == (n, 2)
        assert np.shares_memory(whole.data, self.results.n)
        assert self.results.get_buffer("s").shape == SIG
        assert self.results.get_buffer("o").shape == (1,)
        with pytest.raises(
            ud.UDFError, match=r"no buffer 'late'; allocated buffers: \['n', 'o', 's'\]"
        ):
            self.results.get_buffer("late")
        with pytest.raises(ud.UDFError, match=r"no buffer 'x'; allocated buffers:"):
            self.results.get_buffer("x")
        with pytest.raises(AttributeError, match=r"no buffer 'x'; declared buffers:"):
            _ = self.results.x
        with pytest.raises(ud.UDFError, match=r"'late' is result_only: return it from get_results"):
            self.results.late = 1

    udf = make(
        {
            "n": {"kind": "nav", "dtype": "i4", "extra_shape": (2,)},
            "s": {"kind": "sig"},
            "o": {"kind": "single"},
            "late": {"kind": "single", "use": "result_only"},
        },
        process_frame=process_frame,
        merge=lambda self, dest, src: None,
        get_results=lambda self: {"late": float(self.results.get_buffer("n").data.shape[0])},
    )()
    assert compute(x, udf)["late"] == 4


@pytest.mark.point(10)
@pytest.mark.parametrize("roi", [None, np.s_[1:3, 2:5]])
def test_the_whole_buffer_in_get_results(x, roi):
    """In navigation shape, filled outside the ROI; raw_data are the rows."""

    def process_frame(self, frame):
        self.results.n[:] = frame.sum()

    def get_results(self):
        whole = self.results.get_buffer("n")
        assert whole.data.shape == (4, 6, 2)
        inside = np.ones((4, 6), dtype=bool) if self.meta.roi is None else self.meta.roi
        np.testing.assert_array_equal(whole.data[inside], whole.raw_data)
        assert np.isnan(whole.data[~inside]).all()
        assert whole.roi is self.meta.roi
        assert whole.raw_data.shape == (np.count_nonzero(inside), 2)
        return {"n": whole.data * 2}

    udf = make(
        {"n": {"kind": "nav", "extra_shape": (2,)}},
        process_frame=process_frame,
        get_results=get_results,
    )()
    done = compute(x, udf, roi=roi)
    chosen = ~np.isnan(done["n"][..., 0])
    expected = 2 * x.sum(axis=(2, 3)).compute(**SYNC)
    np.testing.assert_allclose(done["n"][chosen][:, 1], expected[chosen])
