"""Points 8 and 11: what a declaration may say, and what follows from it."""

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


@pytest.mark.point(3, 8)
@pytest.mark.parametrize("scheduler", ["synchronous", "processes"])
def test_object_buffers_that_preprocess_fills(x, values, scheduler):
    """Ragged results: lists made by preprocess, of chunks and of merges, and lazily computed."""

    def preprocess(self):
        for name in ("rows", "whole"):
            view = getattr(self.results, name)
            for place in np.ndindex(view.shape):
                view[place] = []

    def process_frame(self, frame):
        self.results.rows[0].extend(frame[frame > 350].tolist())
        self.results.whole[0].append(float(frame[0, 0]))

    def merge(self, dest, src):
        dest.rows[:] = src.rows
        dest.whole[0].extend(src.whole[0])

    udf = make(
        {"rows": {"kind": "nav", "dtype": object}, "whole": {"kind": "single", "dtype": object}},
        preprocess=preprocess,
        process_frame=process_frame,
        merge=merge,
    )()
    roi = np.indices(NAV).sum(axis=0) % 2 == 1
    lazy = ud.run_udf(x, udf, roi=roi)
    done = lazy.compute(scheduler=scheduler)
    for place in np.ndindex(NAV):
        frame = values[place]
        assert done["rows"][place] == (frame[frame > 350].tolist() if roi[place] else None)
    assert sorted(done["whole"].item()) == values[roi][:, 0, 0].tolist()
    assert lazy["rows"].dtype == object
    assert lazy["rows"][0, 0].compute(scheduler=scheduler) is None
