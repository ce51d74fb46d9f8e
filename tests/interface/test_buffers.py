"""Points 8 to 11: declarations, views, assignment, names."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC, compute, make

STRUCT = np.dtype([("a", "f4"), ("b", "i2")])


DTYPES = [
    ("bool", True, False),
    ("int8", -3, 0),
    ("int64", -(2**40), 0),
    ("uint8", 200, 0),
    ("uint64", 2**63, 0),
    ("float16", 1.5, np.nan),
    ("float32", 1.5, np.nan),
    ("float64", 1.5, np.nan),
    ("complex64", 1 + 2j, complex(np.nan, np.nan)),
    ("complex128", 1 + 2j, complex(np.nan, np.nan)),
    ("S3", b"abc", b""),
    ("U5", "abcde", ""),
    ("datetime64[s]", np.datetime64("2020-01-01T00:00:00", "s"), np.datetime64("NaT", "s")),
    ("timedelta64[ms]", np.timedelta64(5, "ms"), np.timedelta64("NaT", "ms")),
    (STRUCT, np.array((1.5, 2), dtype=STRUCT)[()], np.zeros((), dtype=STRUCT)[()]),
    (object, {"a": 1}, None),
]


def filled(shape, dtype, value) -> np.ndarray:
    """An array that holds the value everywhere, whatever it is."""
    array = np.empty(shape, dtype=dtype)
    for place in np.ndindex(shape):
        array[place] = value
    return array


@pytest.mark.point(8, 12)
@pytest.mark.parametrize(("dtype", "value", "fill"), DTYPES, ids=[str(d[0]) for d in DTYPES])
@pytest.mark.parametrize("extra", [(), (2,), (0,)])
def test_every_dtype(x, dtype, value, fill, extra):
    kinds = {k: {"kind": k, "dtype": dtype, "extra_shape": extra} for k in ("nav", "sig", "single")}

    def process_frame(self, frame):
        for name in kinds:
            view = getattr(self.results, name)
            for place in np.ndindex(view.shape):
                view[place] = value

    def merge(self, dest, src):
        for name in kinds:
            getattr(dest, name)[...] = getattr(src, name)

    udf = make(kinds, process_frame=process_frame, merge=merge)()
    roi = np.zeros(NAV, dtype=bool)
    roi[1:3, 2:5] = True
    lazy = ud.run_udf(x, udf, roi=roi)
    done = lazy.compute(**SYNC)
    assert {n: a.shape for n, a in done.items()} == {
        "nav": NAV + extra,
        "sig": SIG + extra,
        "single": extra,
    }
    for name, array in done.items():
        assert array.dtype == np.dtype(dtype) == lazy[name].dtype
        assert lazy[name].shape == array.shape
    inside = done.raw["nav"]
    assert inside.shape == (6, *extra)
    assert (inside == filled(inside.shape, dtype, value)).all()
    assert (done["sig"] == filled(done["sig"].shape, dtype, value)).all()
    outside = done["nav"][~roi].reshape(-1)
    assert outside.size == (24 - 6) * int(np.prod(extra))
    expected = filled(outside.shape, dtype, fill)
    if np.dtype(dtype).kind in "fcmM":
        np.testing.assert_array_equal(outside, expected)
    else:
        assert (outside == expected).all()


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


@pytest.mark.point(8)
def test_what_a_declaration_may_say(x):
    def get_result_buffers(self):
        sig = self.meta.dataset_shape.sig
        return {
            "plain": self.buffer("nav"),
            "by_shape": self.buffer("nav", extra_shape=sig),
            "whole": self.buffer("single", extra_shape=self.meta.dataset_shape),
            "number": self.buffer("nav", extra_shape=4),
            "numbers": self.buffer("sig", np.array([2, 0]), "int16", None, None),
            "device": self.buffer("nav", where="device", dtype=np.int8),
        }

    udf = make(
        {},
        process_frame=lambda self, frame: None,
        merge=lambda self, dest, src: None,
        get_result_buffers=get_result_buffers,
    )()
    done = compute(x, udf)
    assert isinstance(udf.buffer("nav").dtype, np.dtype)
    assert {name: (a.shape, a.dtype.str) for name, a in done.items()} == {
        "plain": (NAV, "<f4"),
        "by_shape": (NAV + SIG, "<f4"),
        "whole": (NAV + SIG, "<f4"),
        "number": ((*NAV, 4), "<f4"),
        "numbers": ((*SIG, 2, 0), "<i2"),
        "device": (NAV, "|i1"),
    }


@pytest.mark.point(8)
def test_use(x):
    """None is a result; private only exists while processing, result_only only at the end."""

    def process_frame(self, frame):
        self.results.p += 1
        assert self.results.r is None

    udf = make(
        {
            "n": {"kind": "single"},
            "p": {"kind": "single", "use": "private"},
            "r": {"kind": "single", "use": "result_only"},
        },
        process_frame=process_frame,
        merge=lambda self, dest, src: setattr(dest, "p", dest.p + src.p),
        get_results=lambda self: {"r": self.results.p},
    )()
    done = compute(x, udf)
    assert list(done) == ["n", "r"]
    assert done["r"] == 24


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
        with pytest.raises(ud.UDFError, match=r"no buffer 'late'; allocated are \['n', 'o', 's'\]"):
            self.results.get_buffer("late")
        with pytest.raises(ud.UDFError, match=r"no buffer 'x'; allocated are"):
            self.results.get_buffer("x")
        with pytest.raises(AttributeError, match=r"no buffer 'x'; declared are"):
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
    assert compute(x, udf)["late"] == 24


@pytest.mark.point(11)
def test_result_only_buffers_are_absent_in_merges(x):
    def look(self, *views):
        for view in views:
            assert "late" not in view
            assert list(view) == ["o"]
            assert not hasattr(view, "late")

    def merge(self, dest, src):
        look(self, dest, src)
        dest.o += src.o

    def merge_all(self, ordered_results):
        look(self, *ordered_results.values())
        return {"o": sum(p.o for p in ordered_results.values())}

    for how in ({"merge": merge}, {"merge_all": merge_all}):
        udf = make(
            {"o": {"kind": "single"}, "late": {"kind": "single", "use": "result_only"}},
            process_frame=lambda self, frame: setattr(self.results, "o", self.results.o + 1),
            get_results=lambda self: {"late": self.results.o * 2},
            **how,
        )()
        assert compute(x, udf)["late"] == 48


@pytest.mark.point(11, 13)
@pytest.mark.parametrize(
    ("declared", "returned"),
    [
        ("float32", np.float64),
        ("float64", np.float16),
        ("complex64", np.complex128),
        ("int8", np.int64),
        ("uint64", np.uint8),
        ("U5", "U3"),
        ("datetime64[s]", "datetime64[D]"),
    ],
)
def test_another_precision_is_cast(x, declared, returned):
    udf = make(
        {"v": {"kind": "nav", "dtype": declared}, "w": {"kind": "nav", "dtype": declared}},
        process_frame=lambda self, frame: None,
        get_results=lambda self: {"v": np.full(24, 3).astype(returned)},
    )()
    done = compute(x, udf)
    assert list(done) == ["v", "w"]  # left out and passed on
    assert done["v"].dtype == done["w"].dtype == np.dtype(declared)
    assert (done["v"] == np.full(24, 3).astype(returned).astype(declared)[0]).all()
