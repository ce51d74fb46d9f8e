"""The UDF interface, point by point: buffers, views, parameters, meta, dtypes, life of a UDF."""

import threading

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.udfs import AutoUDF, SumUDF

NAV, SIG = (4, 6), (3, 5)
SYNC = {"scheduler": "synchronous"}


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return np.arange(np.prod(NAV + SIG), dtype="float32").reshape(NAV + SIG)


@pytest.fixture
def x(values) -> da.Array:
    """The second navigation axis is chunked: the rows of a chunk are not neighbours."""
    return da.from_array(values, chunks=(2, 4, 3, 5))


def make(buffers, **methods):
    """A UDF class from declarations (arguments of buffer by name) and methods."""

    def get_result_buffers(self):
        return {name: self.buffer(**arguments) for name, arguments in buffers.items()}

    return type("Made", (ud.UDF,), {"get_result_buffers": get_result_buffers, **methods})


def compute(x, udf, **options):
    return ud.run_udf(x, udf, **options).compute(**SYNC)


# Buffers.

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


def test_fill_value(x):
    udf = make(
        {
            "a": {"kind": "nav", "dtype": "int32", "fill_value": -1},
            "b": {"kind": "nav", "dtype": "float32", "fill_value": 0},
        },
        process_frame=lambda self, frame: None,
    )()
    done = compute(x, udf, roi=(0, 0))
    assert done["a"].sum() == -23
    assert done["b"].sum() == 0


NAMES = ["count", "index", "data", "dtype", "keys", "items", "get", "get_buffer", "self", "class_"]


def test_any_name(x):
    def process_frame(self, frame):
        for place, name in enumerate(NAMES):
            getattr(self.results, name)[:] = frame.sum() + place

    done = compute(x, make({n: {"kind": "nav"} for n in NAMES}, process_frame=process_frame)())
    assert list(done) == NAMES
    for place, name in enumerate(NAMES):
        np.testing.assert_allclose(done[name], x.sum(axis=(2, 3)).compute(**SYNC) + place)


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


def test_single_shapes(x):
    udf = make(
        {"a": {"kind": "single"}, "b": {"kind": "single", "extra_shape": (1,)}},
        process_frame=lambda self, frame: None,
        merge=lambda self, dest, src: None,
    )()
    lazy = ud.run_udf(x, udf)
    done = lazy.compute(**SYNC)
    for res in (lazy, done):
        assert res["a"].shape == ()
        assert res.raw["a"].shape == (1,)
        assert res["b"].shape == res.raw["b"].shape == (1,)
        assert res.valid_mask["a"].shape == ()
    assert lazy.raw["a"].compute(**SYNC).tolist() == [0]


@pytest.mark.parametrize("form", ["rows", "full", "flat"])
def test_nav_results_in_any_shape(x, form):
    roi = np.zeros(NAV, dtype=bool)
    roi[1:, 3:5] = True

    def get_results(self):
        v = self.results.v
        if form == "rows":
            return {"v": v * 2}
        full = np.zeros(NAV, dtype="float64")  # another precision
        full[self.meta.roi] = v * 2
        return {"v": full if form == "full" else full.reshape(-1)}

    def process_frame(self, frame):
        self.results.v = frame.sum()

    udf = make({"v": {"kind": "nav"}}, process_frame=process_frame, get_results=get_results)()
    done = compute(x, udf, roi=roi)
    assert done["v"].dtype == np.float32
    np.testing.assert_allclose(done["v"][roi], 2 * x.sum(axis=(2, 3)).compute(**SYNC)[roi])
    assert np.isnan(done["v"][~roi]).all()


def test_private_and_passed_on(x):
    def process_frame(self, frame):
        self.results.kept = self.results.secret[:] = frame.sum()

    udf = make(
        {"kept": {"kind": "nav"}, "secret": {"kind": "nav", "use": "private"}},
        process_frame=process_frame,
        get_results=lambda self: {},
    )()
    assert list(compute(x, udf)) == ["kept"]


# Parameters and task data.


def test_params():
    udf = ud.UDF(a=1, get=2, _hidden=3)
    assert (udf.params.a, udf.params["a"], udf.params._hidden) == (1, 1, 3)
    assert udf.params.get == 2  # its name hides the method
    assert ud.UDF(a=1).params.get("b", 5) == 5
    assert ud.UDF(a=1).params.get("a") == 1
    assert "a" in udf.params
    assert udf.xp is np
    with pytest.raises(ud.UDFError, match=r"parameters cannot be assigned"):
        udf.params.a = 2
    with pytest.raises(AttributeError, match=r"there is no parameter 'b'"):
        _ = udf.params.b


def test_task_data(x):
    def get_task_data(self):
        return {"first": self.meta.coordinates[0].copy(), "n": self.meta.partition_shape.nav[0]}

    def preprocess(self):
        if hasattr(self, "task_data"):  # not on the merging side
            self.results.v[:] = self.task_data["n"]

    def process_frame(self, frame):
        assert self.task_data.get("nothing", 7) == 7
        assert "first" in self.task_data
        self.results.v[:] += 100 * self.task_data.first.sum()

    udf = make(
        {"v": {"kind": "nav"}},
        get_task_data=get_task_data,
        preprocess=preprocess,
        process_frame=process_frame,
    )()
    expected = np.empty(NAV)
    for rows in (slice(0, 2), slice(2, 4)):
        for columns in (slice(0, 4), slice(4, 6)):
            n = 2 * (columns.stop - columns.start)
            expected[rows, columns] = n + 100 * (rows.start + columns.start)
    np.testing.assert_array_equal(compute(x, udf)["v"], expected)


# Meta.


class Looks(ud.UDF):
    """Checks every fact about a piece against the whole data set."""

    def __init__(self, values, flat, roi):
        super().__init__(values=values, flat=flat, roi=roi)

    def get_result_buffers(self):
        assert tuple(self.meta.dataset_shape) == NAV + SIG
        assert self.meta.dataset_dtype == np.float32
        return {
            "seen": self.buffer(kind="nav", dtype="int64"),
            "rows": self.buffer(kind="nav", dtype="int64"),
        }

    def look(self, data, n):
        meta, flat = self.meta, self.params.flat
        places = meta.coordinates
        assert places.shape == (n, 2)
        part = meta.sig_slice
        np.testing.assert_array_equal(
            data, self.params.values[tuple(places.T)][(..., *part.get())].reshape(data.shape)
        )
        where = meta.slice
        assert tuple(where.shape) == (n, *part.shape)
        assert where.sig == part == meta.tiling_scheme[meta.tiling_scheme_idx] or part.shape == SIG
        np.testing.assert_array_equal(flat[where.get()], data.reshape(where.shape))
        np.testing.assert_array_equal(where.get(flat), data.reshape(where.shape))
        (rows,) = where.get(nav_only=True)
        np.testing.assert_array_equal(np.arange(len(flat))[rows], self.numbers(places))
        if isinstance(rows, slice):
            assert where.origin[0] == rows.start
        else:
            with pytest.raises(ud.UDFError, match=r"no origin.*contiguous_nav"):
                _ = where.origin
            with pytest.raises(ValueError, match=r"read-only"):
                where.get(flat)[...] = 0
        assert meta.partition_shape.nav[0] >= n
        assert tuple(meta.partition_shape.sig) == SIG
        if self.params.roi is None:
            assert meta.roi is None
        else:
            np.testing.assert_array_equal(meta.roi, self.params.roi)
        assert meta.get_valid_nav_mask() is None
        assert (meta.device_class, meta.array_backend, meta.corrections) == ("cpu", "numpy", None)
        assert meta.threads_per_worker == 1
        assert hash(where) == hash(meta.slice)
        self.results.seen[:] += data.size
        self.results.rows[:] = self.numbers(places)

    def numbers(self, places):
        roi = np.ones(NAV, dtype=bool) if self.params.roi is None else self.params.roi
        return (np.cumsum(roi) - 1).reshape(NAV)[tuple(places.T)] if len(places) else []


class LooksAtFrames(Looks):
    def process_frame(self, frame):
        self.look(frame, 1)


class LooksAtTiles(Looks):
    def process_tile(self, tile):
        # data.size of a tile counts all frames: note pixels per frame instead
        self.look(tile, len(tile))
        self.results.seen[:] += tile[0].size - tile.size


class LooksAtPartitions(Looks):
    def process_partition(self, partition):
        self.look(partition, len(partition))
        self.results.seen[:] += partition[0].size - partition.size


CHECKER = np.indices(NAV).sum(axis=0) % 2 == 0


@pytest.mark.parametrize(
    "roi", [None, CHECKER, CHECKER & (np.arange(6) < 4)], ids=["all", "a", "b"]
)
@pytest.mark.parametrize("cls", [LooksAtFrames, LooksAtTiles, LooksAtPartitions])
@pytest.mark.parametrize("contiguous", [False, True])
@pytest.mark.parametrize("sig_chunks", [(3, 5), (2, 3)])
def test_meta(values, roi, cls, contiguous, sig_chunks):
    if contiguous and cls is LooksAtPartitions:
        return
    x = da.from_array(values, chunks=(2, 4, *sig_chunks))
    flat = values.reshape(-1, *SIG) if roi is None else values[roi]
    made = type("Made", (cls,), {"contiguous_nav": contiguous})
    with dask.config.set({"udfdask.tile-bytes": 100}):
        done = compute(x, made(values, flat, roi), roi=roi)
    n = 24 if roi is None else np.count_nonzero(roi)
    assert done.raw["rows"].tolist() == list(range(n))
    assert set(done.raw["seen"].tolist()) == {15}


def test_contiguous_nav_gives_origins(x):
    def process_tile(self, tile):
        start = self.meta.slice.origin[0]
        self.results.v[:] = np.arange(start, start + len(tile))

    buffers = {"v": {"kind": "nav", "dtype": "int64"}}
    udf = make(buffers, process_tile=process_tile, contiguous_nav=True)()
    assert compute(x, udf).raw["v"].tolist() == list(range(24))
    with pytest.raises(ud.UDFError, match=r"this slice has no origin"):
        compute(x, make(buffers, process_tile=process_tile)())


def test_contiguous_partitions_that_cannot_be(x):
    udf = make(
        {"v": {"kind": "nav"}}, process_partition=lambda self, p: None, contiguous_nav=True
    )()
    with pytest.raises(ud.ArgumentValueError, match=r"contiguous_nav.*rechunk"):
        ud.run_udf(x, udf)
    ud.run_udf(x.rechunk((1, 6, 3, 5)), udf)


def test_valid_nav_mask(x):
    """In a merge what came before, in get_results everything."""
    log = []

    def merge(self, dest, src):
        log.append(int(self.meta.get_valid_nav_mask().sum()))
        assert self.meta.get_valid_nav_mask(full_nav=True).shape == NAV
        assert len(self.meta.coordinates) in (4, 8)

    def get_results(self):
        return {"v": int(self.meta.get_valid_nav_mask(full_nav=True).sum())}

    udf = make(
        {"v": {"kind": "single", "dtype": "int64"}},
        process_frame=lambda self, frame: None,
        merge=merge,
        get_results=get_results,
    )()
    assert compute(x, udf)["v"] == 24
    assert log == [0, 8, 12, 20]


# Life of a UDF.


def test_order_of_calls_and_fresh_instances(x):
    calls, instances, inside = [], set(), threading.local()

    def note(self, name):
        calls.append(name)
        instances.add(id(self))
        inside.kept = [*getattr(inside, "kept", []), self]  # so that no id is used again

    udf = make(
        {"v": {"kind": "nav"}},
        get_task_data=lambda self: note(self, "task") or {},
        preprocess=lambda self: note(self, "pre"),
        process_partition=lambda self, partition: note(self, "process"),
        postprocess=lambda self: note(self, "post"),
        cleanup=lambda self: note(self, "cleanup"),
    )()
    before = dict(udf.__dict__)
    compute(x, udf)
    assert calls == ["task", "pre", "process", "post", "cleanup"] * 4
    assert len(instances) == 4
    assert id(udf) not in instances
    assert udf.__dict__ == before


def test_state_does_not_leak(x):
    def process_frame(self, frame):
        self.count = getattr(self, "count", 0) + 1
        self.results.v[:] = self.count

    udf = make({"v": {"kind": "nav"}}, process_frame=process_frame)()
    done = compute(x, udf)["v"]
    assert done[:2, :4].reshape(-1).tolist() == list(range(1, 9))
    assert done[2:, 4:].reshape(-1).tolist() == list(range(1, 5))
    assert not hasattr(udf, "count")


def test_one_instance_on_two_arrays_at_once(x):
    udf = SumUDF()
    a, b = ud.run_udf(x, udf), ud.run_udf((x + 1)[1:], udf, roi=(0, 0))
    a, b = ud.compute(a, b, scheduler="threads")
    np.testing.assert_allclose(a["intensity"], x.sum(axis=(0, 1)).compute(**SYNC))
    np.testing.assert_allclose(b["intensity"], x[1, 0].compute(**SYNC) + 1)


class SetsAttributes(ud.UDF):
    def __init__(self, a):
        self.before = a + 1
        super().__init__(a=a)
        self.after = self.params.a + 2

    def get_result_buffers(self):
        return {"v": self.buffer(kind="nav", extra_shape=(self.after,))}

    def process_frame(self, frame):
        self.results.v[:] = self.before * 10 + self.after


@pytest.mark.parametrize("scheduler", ["synchronous", "processes"])
def test_attributes_of_init(x, scheduler):
    done = ud.run_udf(x, SetsAttributes(1)).compute(scheduler=scheduler)
    assert done["v"].shape == (*NAV, 3)
    assert (done["v"] == 23).all()


def test_mixins_and_lambdas_made_in_a_function(x):
    """Cooperative declarations, hooks found by name; all of it travels to other processes."""

    class Sums:
        def get_result_buffers(self):
            return {**super().get_result_buffers(), "s": self.buffer(kind="nav")}

    class Tops:
        def get_result_buffers(self):
            return {"t": self.buffer(kind="nav")}

        def postprocess(self):
            self.results.t += 1

    class Both(Sums, Tops, ud.UDF):
        def process_frame(self, frame):
            self.results.s = self.params.f(frame.sum())
            self.results.t = frame.max()

    done = ud.run_udf(x, Both(f=lambda v: -v)).compute(scheduler="processes", num_workers=2)
    data = x.compute(**SYNC)
    np.testing.assert_allclose(done["s"], -data.sum(axis=(2, 3)))
    np.testing.assert_array_equal(done["t"], data.max(axis=(2, 3)) + 1)


def test_preprocess_on_the_merging_side(x):
    def preprocess(self):
        self.results.low[:] = np.inf

    def process_frame(self, frame):
        self.results.low[:] = min(self.results.low[0], frame.min() + 5)

    def merge(self, dest, src):
        dest.low = np.minimum(dest.low, src.low)

    buffers = {"low": {"kind": "single"}}
    udf = make(buffers, preprocess=preprocess, process_frame=process_frame, merge=merge)()
    assert compute(x, udf)["low"] == 5
    assert compute(x, udf, split_every=2)["low"] == 5
    assert compute(x, udf, roi=np.zeros(NAV, dtype=bool))["low"] == np.inf


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


# Dtypes and shapes of the input.


@pytest.mark.parametrize(
    ("dtype", "preferred", "expected"),
    [
        ("uint8", None, "float32"),
        ("uint16", None, "float32"),
        ("int16", None, "float32"),
        ("float16", None, "float32"),
        ("bool", None, "float32"),
        ("int32", None, "float64"),
        ("uint32", None, "float64"),
        ("int64", None, "float64"),
        ("float32", None, "float32"),
        ("float64", None, "float64"),
        ("complex64", None, "complex64"),
        (">u2", None, "float32"),
        (">f8", None, "=f8"),
        ("uint16", ud.UDF.USE_NATIVE_DTYPE, "uint16"),
        ("bool", ud.UDF.USE_NATIVE_DTYPE, "bool"),
        (">u2", ud.UDF.USE_NATIVE_DTYPE, "=u2"),
        (">i4", ud.UDF.USE_NATIVE_DTYPE, "=i4"),
        ("uint16", "float64", "float64"),
        ("uint8", "complex64", "complex64"),
    ],
)
@pytest.mark.parametrize("method", ["process_frame", "process_tile", "process_partition"])
def test_input_dtype(dtype, preferred, expected, method):
    data = (np.arange(2 * 3 * 4 * 4) % 2).reshape(2, 3, 4, 4).astype(dtype)
    x = da.from_array(data, chunks=(1, 3, 4, 4))

    def process(self, piece):
        assert piece.dtype == np.dtype(expected) == self.meta.input_dtype
        assert piece.dtype.isnative
        assert self.meta.dataset_dtype == np.dtype(dtype)
        self.results.v[:] = piece.reshape(-1, 16).sum(axis=1).real.astype("float64")

    methods = {method: process}
    if preferred is not None:
        methods["get_preferred_input_dtype"] = lambda self: preferred
    done = compute(x, make({"v": {"kind": "nav", "dtype": "float64"}}, **methods)())
    np.testing.assert_array_equal(done["v"], np.full((2, 3), 8.0))


@pytest.mark.parametrize("sig_dims", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["process_frame", "process_tile", "process_partition"])
def test_sig_dims(values, sig_dims, method):
    x = da.from_array(values, chunks=(2, 6, 2, 5))
    nav, sig = x.shape[: 4 - sig_dims], x.shape[4 - sig_dims :]

    def process(self, data):
        assert data.shape[-sig_dims:] == sig or method == "process_tile"
        self.results.v += data.reshape(len(self.results.v), -1).sum(axis=1)
        assert self.meta.coordinates.shape[1] == 4 - sig_dims

    udf = make({"v": {"kind": "nav", "dtype": "float64"}}, **{method: process})()
    done = compute(x, udf, sig_dims=sig_dims)
    assert done["v"].shape == nav
    axes = tuple(range(4 - sig_dims, 4))
    np.testing.assert_allclose(done["v"], values.sum(axis=axes, dtype="float64"))
    assert done.raw["v"].shape == (int(np.prod(nav)),)


# map_frames and AutoUDF.


def test_map_frames(x, values):
    def column_sums(frame, power=1):
        return frame.sum(axis=0) ** power

    found = ud.map_frames(column_sums, x, power=2)
    assert isinstance(found, da.Array)
    assert found.shape == (*NAV, 5)
    assert found.chunks[:2] == x.chunks[:2]
    np.testing.assert_allclose(found.compute(**SYNC), values.sum(axis=2) ** 2)
    scalar = ud.map_frames(np.max, x, roi=(1, 1)).compute(scheduler="threads")
    assert scalar[1, 1] == values[1, 1].max()
    assert np.isnan(scalar).sum() == 23


def test_map_frames_ragged(x, values):
    def above(frame, level):
        return frame[frame > level]

    found = ud.map_frames(above, x, ragged=True, level=100, roi=np.s_[1:]).compute(**SYNC)
    assert found.dtype == object
    assert found[0, 0] is None
    for place in np.ndindex(3, 6):
        np.testing.assert_array_equal(found[1:][place], above(values[1:][place], 100))


@pytest.mark.parametrize(
    "value", [np.zeros((2, 3)), [1, 2], (1, "a"), {"a": 1}, "text", None, 3.5, np.zeros(1)]
)
def test_map_frames_ragged_takes_anything(x, value):
    found = ud.map_frames(lambda frame: value, x, ragged=True).compute(**SYNC)
    assert found.shape == NAV
    for one in found.reshape(-1):
        assert type(one) is type(value)
        np.testing.assert_equal(one, value)


def test_function_is_called_once_while_building(x):
    calls = []

    def f(frame):
        calls.append(frame.shape)
        return frame.sum()

    ud.map_frames(f, x)
    assert calls == [SIG]


def test_function_is_not_called_while_building_if_told(x):
    def f(frame):
        raise AssertionError("called")

    found = ud.map_frames(f, x, output_shape=(2,), output_dtype="int16")
    assert (found.shape, found.dtype) == ((*NAV, 2), np.int16)
    assert ud.map_frames(f, x, ragged=True).dtype == object


def test_function_that_fails_on_the_mock_frame(x):
    def f(frame):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        ud.map_frames(f, x)
    assert "output_shape= and output_dtype=" in caught.value.__notes__[0]
    for value in ({"a": 1}, [[1], [1, 2]]):
        with pytest.raises(ud.UDFError, match=r"ragged=True"):
            ud.map_frames(lambda frame, value=value: value, x)


def test_auto_udf_wants_a_function():
    with pytest.raises(ud.ArgumentTypeError, match=r"expected a function of a frame, got int"):
        AutoUDF(f=3)
