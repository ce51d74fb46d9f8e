"""Point 18: in which dtype a UDF sees the data, whatever their dtype and its preference."""

import functools

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import compute, make

NATIVE = ud.UDF.USE_NATIVE_DTYPE
INPUTS = [
    *("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"),
    *(">u2", ">u4", ">u8", ">i2", ">i4", ">i8", ">f2", ">f4", ">f8", ">c8", ">c16"),
]
PREFERENCES = [
    *(None, NATIVE, "bool", "float16", "float32", "float64", "complex64", "complex128"),
    *("uint8", "uint16", "int16", "int64", "uint64", ">f4", ">i2"),
]

# What the interface promises by name, beside np.result_type.
PROMISED = {
    **dict.fromkeys([("?", None), ("u1", None), ("u2", None), ("f2", None), (">u2", None)], "f4"),
    **dict.fromkeys([("i4", None), ("i8", None), ("u4", None), (">i4", None)], "f8"),
    **dict.fromkeys([("c8", None), (">c8", None), ("u2", "complex64")], "c8"),
    **{(code, NATIVE): code.lstrip(">") for code in INPUTS},
}


def data_of(code):
    """Values that every one of the dtypes holds."""
    return (np.arange(2 * 3 * 2 * 4) % 2).reshape(2, 3, 2, 4).astype(code)


class Sees(ud.UDF):
    """Notes what `process_*` is given; `by` is its method, `want` the preference."""

    def __init__(self, by, want):
        super().__init__(by=by, want=want)

    def get_result_buffers(self):
        return {
            "total": self.buffer("nav", dtype=self.meta.input_dtype),
            "code": self.buffer("nav", dtype="U5"),
        }

    def get_preferred_input_dtype(self):
        return super().get_preferred_input_dtype() if self.params.want is None else self.params.want

    def get_method(self):
        return ud.UDFMethod(self.params.by)

    def look(self, data):
        assert data.dtype == self.meta.input_dtype
        assert data.dtype.isnative
        assert self.meta.input_dtype.isnative
        self.results.code[:] = data.dtype.str[1:]
        flat = data.reshape(len(self.results.total), -1)
        self.results.total[:] = flat.max(axis=1) if data.dtype == bool else flat.sum(axis=1)

    process_frame = process_tile = process_partition = look


METHODS = ["tile", "frame", "partition"]


@functools.cache
def in_company(code):
    """The results of every method and preference, all in one run."""
    udfs = [Sees(by, want) for want in PREFERENCES for by in METHODS]
    results = iter(compute(da.from_array(data_of(code), chunks=(1, 3, 2, 4)), udfs))
    return {want: [next(results) for _ in METHODS] for want in PREFERENCES}


@pytest.mark.point(18)
@pytest.mark.parametrize("want", PREFERENCES, ids=lambda p: getattr(p, "__name__", p) or "default")
@pytest.mark.parametrize("code", INPUTS)
def test_table(code, want):
    """The dtype, its values, and the same with or without UDFs that prefer other dtypes."""
    data = data_of(code)
    x = da.from_array(data, chunks=(1, 3, 2, 4))
    preferred = np.dtype("float32" if want is None else want)
    expected = np.result_type(data.dtype, preferred).newbyteorder("=")
    assert expected == PROMISED.get((code, want), expected)
    sums = (data != 0).sum(axis=(2, 3))
    same = compute(x, [Sees(by, want) for by in METHODS])
    for alone, beside in zip(same, in_company(code)[want], strict=True):
        assert set(alone["code"].flat) == set(beside["code"].flat) == {expected.str[1:]}
        assert alone["total"].dtype == beside["total"].dtype == expected
        np.testing.assert_array_equal(alone["total"], sums.astype(expected))
        np.testing.assert_array_equal(beside["total"], alone["total"])


@pytest.mark.point(18)
@pytest.mark.parametrize("code", INPUTS)
def test_dataset_dtype_stays(code):
    """With its byte order, whatever the UDF prefers."""
    seen = set()

    def note(self, *_):
        seen.add(self.meta.dataset_dtype.str)
        return {"v": self.buffer("nav")}

    for want in (NATIVE, "float64"):
        udf = make(
            {},
            get_result_buffers=note,
            process_tile=note,
            get_preferred_input_dtype=lambda self, want=want: want,
        )()
        compute(da.from_array(data_of(code)), udf)
    assert seen == {np.dtype(code).str}


@pytest.mark.point(18)
@pytest.mark.parametrize("value", [2**53 + 1, -(2**62) - 1])
def test_native_integers_are_exact(value):
    """What float64 cannot hold arrives unchanged, also beside a UDF that converts."""
    for code in ("<i8", ">i8"):
        x = da.from_array(np.full((2, 2, 2), value, dtype=code), chunks=1)
        udf = make(
            {"v": {"kind": "nav", "dtype": "int64"}},
            process_frame=lambda self, frame: setattr(self.results, "v", frame[0, 0]),
            get_preferred_input_dtype=lambda self: NATIVE,
        )()
        assert (compute(x, [udf, Sees("frame", None)])[0]["v"] == value).all()


@pytest.mark.point(18)
@pytest.mark.parametrize("method", ["process_tile", "process_partition", "process_frame"])
def test_a_conversion_is_shared(method):
    """UDFs that want the same dtype see the same memory, converted once per tile."""
    seen: dict[str, list[np.ndarray]] = {}

    def note(self, data):
        seen.setdefault(self.params.name, []).append(data)

    def udf(name, want):
        return make(
            {"v": {"kind": "nav"}},
            **{method: note},
            get_preferred_input_dtype=lambda self: want,
        )(name=name)

    x = da.from_array(np.ones((4, 6, 3, 5), dtype="uint16"), chunks=(2, 6, 3, 5))
    udfs = [udf("a", "float32"), udf("b", "float64"), udf("c", "float32"), udf("d", NATIVE)]
    with dask.config.set({"udfdask.tile-bytes": 400}):
        compute(x, udfs)
    assert len(seen["a"]) > 2 or method == "process_partition"
    for one, other, same, native in zip(*(seen[n] for n in "abcd"), strict=True):
        assert one is same or (method == "process_frame" and np.shares_memory(one, same))
        assert not np.shares_memory(one, other)
        assert not np.shares_memory(one, native)
        assert one.dtype == same.dtype == np.float32
        assert other.dtype == np.float64
        assert native.dtype == np.uint16
        assert not any(a.flags.writeable for a in (one, other, native))


@pytest.mark.point(18)
def test_data_in_the_wanted_dtype_are_not_copied():
    data = np.ones((4, 6, 3, 5), dtype="float32")
    x = da.zeros_like(data, chunks=-1).map_blocks(lambda block: data, meta=data[:0])
    seen = []
    compute(x, make({"v": {"kind": "nav"}}, process_tile=lambda self, tile: seen.append(tile))())
    assert seen
    assert all(np.shares_memory(tile, data) for tile in seen)


@pytest.mark.point(18)
def test_the_preference_may_depend_on_the_data_set():
    class Half(Sees):
        def get_preferred_input_dtype(self):
            return np.complex64 if self.meta.dataset_dtype.kind == "u" else NATIVE

    for code, expected in (("u2", "c8"), ("i2", "i2")):
        done = compute(da.from_array(data_of(code)), Half("tile", None))
        assert set(done["code"].flat) == {expected}


@pytest.mark.point(1, 18)
@pytest.mark.parametrize("scheduler", ["synchronous", "processes"])
def test_a_dtype_as_parameter(scheduler):
    """Scalar types are classes with an nbytes that is no number."""
    x = da.from_array(data_of("u1"), chunks=(1, 3, 2, 4))
    wants = [np.float64, ud.UDF.USE_NATIVE_DTYPE, np.dtype("f4"), "c8", float]
    lazy = ud.run_udf(x, [Sees("tile", want) for want in wants])
    assert lazy[0].explain().n_chunks == 2
    for want, done in zip(wants, ud.compute(*lazy, scheduler=scheduler), strict=True):
        assert set(done["code"].flat) == {np.result_type("u1", want).str[1:]}
