"""Points 8 to 11: declarations, views, assignment, names."""

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
