"""A user's mistake is an error of the right type before anything runs."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC, make, run_python
from udfdask.udfs import SumUDF

TYPE, VALUE = ud.ArgumentTypeError, ud.ArgumentValueError
ZEROS = da.zeros((4, 6, 8, 8), chunks=(2, 6, 8, 8), dtype="float32")


def refuse(block, block_info=None):
    if block_info is None:  # dask asks for the meta
        return block
    raise AssertionError("a block was computed")


X = ZEROS.map_blocks(refuse, meta=np.empty((0,) * 4, dtype="float32"))
"""An array that must not be computed."""


class Nav(ud.UDF):
    def get_result_buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float32")}

    def process_frame(self, frame):
        self.results.v[:] = frame.sum()


def nav(**methods):
    """An instance of `Nav` with methods that return these values."""
    returning = {
        name: value if callable(value) else lambda self, value=value: value
        for name, value in methods.items()
    }
    return type("Own", (Nav,), returning)()


def declaring(name="v", **arguments):
    """A UDF that declares one buffer."""
    buffers = {name: {"kind": "nav", **arguments}}
    return make(buffers, process_frame=lambda self, frame: None)()


def not_announced():
    x = da.zeros((10, 4, 4), chunks=(5, 4, 4))
    return x[x[:, 0, 0] == 0]


def of_dtype(dtype):
    return da.from_array(np.empty((2, 4, 4), dtype=dtype), chunks=1)


@pytest.mark.point(21)
@pytest.mark.parametrize(
    ("error", "array"),
    [
        (VALUE, not_announced()),
        (TYPE, of_dtype(object)),
        (TYPE, of_dtype("U3")),
        (TYPE, of_dtype([("a", "f4"), ("b", "i4")])),
        (TYPE, da.ma.masked_equal(da.zeros((2, 4, 4)), 1)),
    ],
)
def test_arrays(error, array):
    with pytest.raises(error):
        ud.run_udf(array, Nav())


@pytest.mark.point(21)
@pytest.mark.parametrize(
    ("error", "sig_dims"),
    [
        *((VALUE, wrong) for wrong in (0, -1, 5)),
        *((TYPE, wrong) for wrong in (2.0, True)),
    ],
)
def test_sig_dims(error, sig_dims):
    with pytest.raises(error):
        ud.run_udf(X, Nav(), sig_dims=sig_dims)


@pytest.mark.parametrize(
    ("error", "udf"),
    [
        *((TYPE, wrong) for wrong in (SumUDF, np.sum, None, [SumUDF(), None])),
        (VALUE, []),
        *((TYPE, wrong) for wrong in ({SumUDF()}, iter([SumUDF()]))),
    ],
)
def test_no_udfs(error, udf):
    with pytest.raises(error):
        ud.run_udf(X, udf)


@pytest.mark.point(6)
@pytest.mark.parametrize(
    ("error", "udf"),
    [
        (TypeError, make({"v": {"kind": "nav"}})()),
        *((ud.UDFError, nav(get_method=method)) for method in ("frame", None)),
        (ud.UDFError, nav(get_method=ud.UDFMethod.TILE)),
    ],
)
def test_methods(error, udf):
    with pytest.raises(error):
        ud.run_udf(X, udf)


@pytest.mark.point(8, 10)
@pytest.mark.parametrize(
    ("error", "udf"),
    [
        (NotImplementedError, type("Silent", (ud.UDF,), {"process_frame": lambda s, f: None})()),
        *((TYPE, nav(get_result_buffers=wrong)) for wrong in (None, [])),
        *((TYPE, nav(get_result_buffers={"v": wrong})) for wrong in (None, "nav")),
        *((VALUE, declaring(name)) for name in ("two words", "", 3)),
        *((VALUE, declaring(kind=kind)) for kind in ("navigation", None)),
        (VALUE, declaring(use="public")),
        (VALUE, declaring(where="gpu")),
        *((VALUE, declaring(extra_shape=wrong)) for wrong in ((-1,), "ab", (2.5,))),
        (TypeError, declaring(dtype="float31")),
        *((VALUE, declaring(dtype="int32", fill_value=wrong)) for wrong in ("x", np.nan, 1.5)),
        *((VALUE, declaring(dtype="uint8", fill_value=wrong)) for wrong in (-1, 300)),
        (VALUE, declaring(dtype="float32", fill_value=[1, 2])),
        (ud.UDFError, declaring(use="result_only")),
    ],
)
def test_declarations(error, udf):
    with pytest.raises(error):
        ud.run_udf(X, udf)


@pytest.mark.point(20)
@pytest.mark.parametrize(
    ("error", "udf"),
    [
        *(
            (VALUE, nav(get_tiling_preferences={key: value}))
            for key in ("depth", "total_size")
            for value in (0, "16", np.nan)
        ),
        *((AttributeError, nav(get_tiling_preferences=wrong)) for wrong in (None, 16)),
        *(
            (TYPE, nav(get_preferred_input_dtype=wrong))
            for wrong in ("float31", "U5", "datetime64[s]")
        ),
        (VALUE, nav(get_backends=("tensorflow",))),
    ],
)
def test_preferences(error, udf):
    with pytest.raises(error):
        ud.run_udf(X, udf)


SPLITS = [(VALUE, 1), (TYPE, True), (TYPE, "8")]


@pytest.mark.parametrize(
    ("error", "options"),
    [
        *((VALUE, {"backends": b}) for b in ("tensorflow", [])),
        *((ud.UDFError, {"corrections": wrong}) for wrong in (np.zeros((8, 8)), "dark")),
        *((error, {"split_every": wrong}) for error, wrong in SPLITS),
    ],
)
def test_options(error, options):
    with pytest.raises(error, match=next(iter(options))):
        ud.run_udf(X, SumUDF(), **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tile-bytes", "nonsense"),
        ("threads-per-task", 0),
        ("worker-memory", -1),
        ("split-every", 1),
    ],
)
def test_settings(name, value):
    with (
        dask.config.set({f"udfdask.{name}": value}),
        pytest.raises(ud.UDFError, match=rf"udfdask.{name}"),
    ):
        ud.run_udf(X, Nav())


# What get_results and merge_all return; a run, because only they can know.

ROWS, ONE = np.zeros(24), [0.0]
RETURNED = [
    ("get_results", {"mean": None}, {"meen": 1, "b": 2}, "'meen' and 'b', not declared .*'mean'"),
    ("get_results", dict.fromkeys("ab", "result_only"), {"a": ROWS, "b": None}, "left out 'b'"),
    ("get_results", {"v": None, "p": "private"}, {"p": ROWS}, "'p', declared use='private'"),
    ("get_results", {"v": None}, {"v": ROWS * 1j}, None),
    ("get_results", {"v": None}, {"v": ROWS[1:]}, VALUE),
    ("get_results", {"v": None}, {"v": 1.0}, VALUE),
    ("get_results", {"v": None}, None, TYPE),
    ("merge_all", {"mean": None}, {"meen": 1}, r"returned 'meen', not declared .*\['mean'\]"),
    ("merge_all", dict.fromkeys("ab"), {}, r"left out 'a' and 'b'.* split_every=False"),
    ("merge_all", dict.fromkeys("ab"), {"a": ONE, "b": ONE, "c": 1}, ValueError),
    ("merge_all", dict.fromkeys("ab"), [1], TypeError),
    ("merge_all", dict.fromkeys("ab"), {"a": [0.0, 1.0], "b": ONE}, ValueError),
    ("merge_all", dict.fromkeys("ab"), {"a": [1], "b": ONE}, None),
]
"""A method, the uses of buffers, what it returns, and the type of the error or its words."""


@pytest.mark.point(11, 17)
@pytest.mark.parametrize(("method", "uses", "returned", "told"), RETURNED)
def test_what_methods_return(method, uses, returned, told):
    kind = "nav" if method == "get_results" else "single"
    buffers = {name: {"kind": kind, "use": use} for name, use in uses.items()}
    methods = {"process_frame": lambda s, f: None, method: lambda self, *_: returned}
    error, words = (ud.UDFError, told) if told is None or isinstance(told, str) else (told, None)
    with pytest.raises(error, match=words and rf"Made.{method}\(\).*{words}"):
        ud.run_udf(ZEROS, make(buffers, **methods)()).compute(**SYNC)


@pytest.mark.point(14)
@pytest.mark.parametrize("mask", [np.ones(24, dtype="int64"), np.ones(23, dtype=bool), 1, None])
def test_masks(mask):
    def get_results(self):
        return {"v": self.with_mask(self.results.v, mask=mask)}

    with pytest.raises(ud.InvalidMaskError):
        ud.run_udf(ZEROS, nav(get_results=get_results)).compute(**SYNC)


class Threshold(ud.UDF):
    def __init__(self, threshold):
        super().__init__(threshold)


@pytest.mark.parametrize("cls", [Threshold, type("Plain", (ud.UDF,), {})])
def test_parameters_without_a_name(cls):
    with pytest.raises(ud.ArgumentTypeError, match=f"{cls.__name__} got 1 .* parameters by name"):
        cls(3)


class Forgets(Nav):
    def __init__(self, level, *more, width=3, **rest):
        self.level = level


def test_init_without_super():
    for use in (ud.run_udf, ud.explain, ud.run_udf_iter):
        with pytest.raises(
            ud.errors.NotAvailableError, match=r"super\(\).__init__\(level=level, width=width\)"
        ):
            use(X, Forgets(1))


def test_a_task_too_large_for_memory():
    with dask.config.set({"udfdask.worker-memory": 8192}):
        (advice,) = ud.explain(X, Nav()).advice
        assert advice.kind == "large tasks"
        assert advice.numbers == {"task": 3072, "limit": 2048}
        with pytest.warns(ud.UDFWarning, match=r"array\.rechunk\(\(1, 6, -1, -1\)\)"):
            ud.run_udf(X, Nav())


def test_expression_arrays():
    code = """
import dask.array as da, udfdask as ud
for use in (ud.run_udf, ud.explain, ud.run_udf_iter):
    try:
        use(da.ones((4, 8, 8)), ud.udfs.SumUDF())
    except ud.ArgumentTypeError as error:
        print(error)
"""
    said = run_python("-c", code, env={"DASK_ARRAY__QUERY_PLANNING": "True"}).stdout
    assert said.count("array.query-planning is on") == 3
