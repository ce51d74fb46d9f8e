"""Hooks beyond the specification: shared task data, axes of results, tiling preferences."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from aux_udfs import Shared
from counting import counts
from making import SYNC, make
from udf_zoo import Rows
from udfdask.udfs import SumUDF


@pytest.fixture
def x():
    return da.ones((20, 3, 4, 4), chunks=(1, 3, 4, 4))


@pytest.mark.point(2)
@pytest.mark.parametrize(
    ("scheduler", "most"), [("synchronous", 1), ("threads", 1), ("processes", 16), ("cluster", 2)]
)
def test_shared_task_data_is_made_once_per_process(tmp_path, x, request, scheduler, most):
    how = {"scheduler": request.getfixturevalue("client") if scheduler == "cluster" else scheduler}
    if scheduler == "processes":
        how["num_workers"] = 2
        most = 2
    table = np.arange(5.0)
    done = ud.run_udf(x, Shared(str(tmp_path), table)).compute(**how)
    assert (done["sums"] == 20).all()
    assert 1 <= counts(tmp_path)["shared"] <= most


@pytest.mark.point(2)
@pytest.mark.parametrize("method", ["get_task_data", "get_shared_task_data"])
def test_task_data_that_are_no_dictionary(x, method):
    methods = {"process_frame": lambda self, frame: None, method: lambda self: [1]}
    udf = make({"v": {"kind": "nav"}}, **methods)()
    with pytest.raises(ud.ArgumentTypeError, match=rf"Made.{method}\(\) must return a dictionary"):
        ud.run_udf(x, udf).compute(**SYNC)


class Moments(ud.UDF):
    def __init__(self, axes=None):
        super().__init__(axes=axes)

    def get_result_buffers(self):
        return {
            "m": self.buffer("nav", extra_shape=(3, 2)),
            "plain": self.buffer("nav", extra_shape=2),
            "none": self.buffer("nav"),
            "hidden": self.buffer("nav", use="private"),
        }

    def get_result_axes(self):
        return self.params.axes or {}

    def process_frame(self, frame):
        pass


KIND = ud.Axis(name="kind", labels=("mean", "var", "skew"))
ENERGY = ud.Axis(name="E", unit="eV", scale=0.5, offset=100.0)


@pytest.mark.point(13)
def test_axes_of_results(x):
    result = ud.run_udf(x, Moments({"m": (KIND, ENERGY)}))
    for res in (result, result.compute(**SYNC)):
        assert res.extra_axes["m"] == (KIND, ENERGY)
        assert res.extra_axes["plain"] == (ud.Axis(name="plain_dim_0"),)
        assert res.extra_axes["none"] == ()
        assert set(res.axes) == set(res)
    assert ud.run_udf(x, SumUDF()).extra_axes == {"intensity": ()}


@pytest.mark.point(13)
@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ({"m": ("a", "b")}, AttributeError, "'str' object"),
        ({"m": (KIND,)}, ud.ArgumentValueError, r"1 axes.*, but its extra_shape is \(3, 2\)"),
        ({"plain": KIND}, ud.ArgumentValueError, r"\[3\] labels, but its extra_shape is \(2"),
        ({"x": (KIND,)}, ud.UndeclaredBufferError, r"names 'x', which is no result"),
    ],
)
def test_bad_axes(x, axes, error, message):
    with pytest.raises(error, match=message):
        ud.run_udf(x, Moments(axes))


@pytest.mark.point(20)
@pytest.mark.parametrize(
    ("depth", "size", "largest"),
    [
        (ud.UDF.TILE_DEPTH_DEFAULT, ud.UDF.TILE_SIZE_MAX, (256, 64, 64)),  # 4 MiB
        (ud.UDF.TILE_DEPTH_MAX, ud.UDF.TILE_SIZE_MAX, (256, 64, 64)),
        (3, ud.UDF.TILE_SIZE_BEST_FIT, (3, 64, 64)),
    ],
)
def test_tiles(depth, size, largest):
    """`test_tiling` has other preferences."""
    shapes = set()

    class Tiles(ud.UDF):
        def get_tiling_preferences(self):
            assert self.meta.device_class == "cpu"
            assert self.meta.threads_per_worker == 1
            return {"depth": depth, "total_size": size}

        def get_result_buffers(self):
            return {"n": self.buffer("nav", dtype="int64")}

        def process_tile(self, tile):
            scheme = self.meta.tiling_scheme
            assert self.meta.sig_slice == scheme[self.meta.tiling_scheme_idx]
            assert tuple(self.meta.sig_slice.shape) == tile.shape[1:]
            assert all(a <= b for a, b in zip(tile.shape, scheme.shape, strict=True))
            shapes.add(tile.shape)
            self.results.n += tile[0].size

    x = da.zeros((8, 50, 64, 64), chunks=(6, 50, 64, 64), dtype="u2")
    assert (ud.run_udf(x, Tiles()).compute(**SYNC)["n"] == 64 * 64).all()
    assert max(shapes) == largest


# Hooks and attributes that an instance has.


@pytest.mark.point(5)
def test_hooks_that_an_instance_has(x):
    """Found like those of the class: presence of the method counts."""

    class Given(ud.UDF):
        def __init__(self):
            super().__init__()
            self.preprocess = lambda: self.results.v.__setitem__(slice(None), 5)
            self.postprocess = lambda: self.results.v.__iadd__(1)
            self.get_task_data = lambda: {"n": 2}
            self.process_frame = lambda frame: self.results.v.__imul__(self.task_data.n)
            self.get_results = lambda: {"v": self.results.v + 100}

        def get_result_buffers(self):
            return {"v": self.buffer("nav")}

    assert (ud.run_udf(x, Given()).compute(**SYNC)["v"] == 5 * 2 + 1 + 100).all()


@pytest.mark.point(2)
def test_task_data_of_one_name(x):
    udf = make(
        {"v": {"kind": "nav"}},
        get_shared_task_data=lambda self: {"table": 1},
        get_task_data=lambda self: {"table": 2},
        process_frame=lambda self, frame: None,
    )()
    with pytest.raises(TypeError, match="multiple values for keyword argument 'table'"):
        ud.run_udf(x, udf).compute(**SYNC)


# Array backends.


@pytest.mark.point(25)
def test_names_of_backends():
    sparseconverter = pytest.importorskip("sparseconverter")
    for name in dir(sparseconverter):
        value = getattr(sparseconverter, name)
        if isinstance(value, str) and value in sparseconverter.BACKENDS - {"numpy.matrix"}:
            assert getattr(ud.UDF, f"BACKEND_{name}") == value
        if name.endswith("_BACKENDS") and name != "NOCUPY_BACKENDS":
            assert getattr(ud.UDF, name) == value - {"numpy.matrix"}
    left_out = {"numpy.matrix", "sparse.DOK", "cuda"}
    assert set(ud.UDF.BACKEND_ALL) == sparseconverter.BACKENDS - left_out


# Results and regions.


@pytest.mark.point(13, 14)
def test_masked_arrays_as_results(x):
    """A masked array is an array with its mask."""

    class Masks(Rows):
        def process_frame(self, frame):
            self.results.sums[:] = self.meta.coordinates[0, 1]

        def get_results(self):
            return {"sums": np.ma.masked_equal(self.results.sums, 1)}

    done = ud.run_udf(x, Masks()).compute(**SYNC)
    np.testing.assert_array_equal(done.valid_mask["sums"], np.indices((20, 3))[1] != 1)
    np.testing.assert_array_equal(done["sums"], np.indices((20, 3))[1])


@pytest.mark.point(22)
def test_a_transposed_roi_is_refused(x):
    with pytest.raises(ud.ArgumentValueError, match=r"\(3, 20\).*is \(20, 3\).*pass roi.T"):
        ud.run_udf(x, SumUDF(), roi=np.ones((3, 20), dtype=bool))
    ud.run_udf(x, SumUDF(), roi=np.ones((1, 20, 3), dtype=bool))
    ud.run_udf(x, SumUDF(), roi=np.ones(60, dtype=bool))


@pytest.mark.point(22)
def test_a_list_of_positions(x):
    with pytest.raises(ud.ArgumentTypeError, match=r"write \[\(\(1, 2\), True\), ...\]"):
        ud.run_udf(x, SumUDF(), roi=[(1, 2)] * 30)


@pytest.mark.point(32)
@pytest.mark.parametrize(
    "name",
    "merge_assigns_nav elementwise_results contiguous_nav writable_input whole_frames".split(),
)
def test_switches_are_true_or_false(x, name):
    udf = type("Made", (SumUDF,), {name: "yes"})()
    with pytest.raises(ud.ArgumentTypeError, match=f"Made.{name} must be True or False, not 'yes'"):
        ud.run_udf(x, udf)
