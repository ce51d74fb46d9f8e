"""A user's mistake is a clear error before anything runs: expected what, came what, do what."""

import dataclasses
import re

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.plan.plan import make_plan
from udfdask.udfs import NoOpUDF, PickUDF, SumSigUDF, SumUDF


def refuse(block, block_info=None):
    if block_info is None:  # dask asks for the meta
        return block
    raise AssertionError("a block was computed")


@pytest.fixture
def x() -> da.Array:
    """An array that must not be computed."""
    return da.zeros((4, 6, 8, 8), chunks=(2, 6, 8, 8), dtype="float32").map_blocks(
        refuse, meta=np.empty((0,) * 4, dtype="float32")
    )


@pytest.fixture
def zeros() -> da.Array:
    return da.zeros((4, 6, 8, 8), chunks=(2, 6, 8, 8), dtype="float32")


class Nav(ud.UDF):
    def get_result_buffers(self):
        return {"v": self.buffer(kind="nav", dtype="float32")}

    def process_frame(self, frame):
        self.results.v[:] = frame.sum()


class Declares(Nav):
    """Declares one buffer with the arguments of the test."""

    def __init__(self, arguments):
        super().__init__(arguments=arguments)

    def get_result_buffers(self):
        return {"v": self.buffer(**{"kind": "nav", **self.params.arguments})}


class Returns(ud.UDF):
    """Returns from get_results the values that the test passes."""

    def __init__(self, returned, buffers=None):
        super().__init__(returned=returned, buffers=buffers)

    def get_result_buffers(self):
        asked = self.params.buffers or {"v": {"kind": "nav"}}
        return {name: self.buffer(**arguments) for name, arguments in asked.items()}

    def process_frame(self, frame):
        pass

    def get_results(self):
        return self.params.returned


# The array.


@pytest.mark.point(21)
def test_unknown_chunks():
    x = da.zeros((10, 4, 4), chunks=(5, 4, 4))
    unknown = x[x[:, 0, 0] == 0]
    with pytest.raises(ud.ArgumentValueError, match=r"unknown chunk sizes.*compute_chunk_sizes"):
        ud.run_udf(unknown, Nav())


@pytest.mark.point(21)
@pytest.mark.parametrize("dtype", [object, "U3", "S3", [("a", "f4"), ("b", "i4")]])
def test_no_numbers(dtype):
    x = da.from_array(np.empty((2, 4, 4), dtype=dtype), chunks=1)
    with pytest.raises(ud.ArgumentTypeError, match=r"the array has dtype .*astype"):
        ud.run_udf(x, Nav())


@pytest.mark.point(21)
def test_masked_array():
    x = da.ma.masked_equal(da.zeros((2, 4, 4)), 1)
    with pytest.raises(ud.ArgumentTypeError, match=r"masked arrays are not supported.*filled"):
        ud.run_udf(x, Nav())


# sig_dims.


@pytest.mark.point(21)
@pytest.mark.parametrize("sig_dims", [0, -1, 5, np.int64(0)])
def test_sig_dims_out_of_range(x, sig_dims):
    with pytest.raises(ud.ArgumentValueError, match=r"between 1 and 4, the number of axes"):
        ud.run_udf(x, Nav(), sig_dims=sig_dims)


@pytest.mark.parametrize("sig_dims", [2.0, True, "2", (1, 2)])
def test_sig_dims_of_wrong_type(x, sig_dims):
    with pytest.raises(ud.ArgumentTypeError, match=r"sig_dims must be an integer"):
        ud.run_udf(x, Nav(), sig_dims=sig_dims)


# The ROI.


@pytest.mark.point(22)
@pytest.mark.parametrize("shape", [(3, 6), (4, 5), (4,), (4, 6, 8)])
def test_roi_of_wrong_size(x, shape):
    with pytest.raises(ValueError, match=r"the roi has shape .*navigation shape .*\(4, 6\)"):
        ud.run_udf(x, Nav(), roi=np.ones(shape, dtype=bool))


@pytest.mark.point(22)
@pytest.mark.parametrize("roi", [(4, 0), (0, 6), (-5, 0)])
def test_roi_position_outside(x, roi):
    with pytest.raises(ud.ArgumentValueError, match=r"lies outside the scan"):
        ud.run_udf(x, Nav(), roi=roi)


@pytest.mark.parametrize("roi", [(1,), (1, 2, 3)])
def test_roi_position_of_wrong_length(x, roi):
    with pytest.raises(ud.ArgumentValueError, match=r"one integer for each of the 2 navigation"):
        ud.run_udf(x, Nav(), roi=roi)


@pytest.mark.parametrize("entry", [(9, 9), (1,), (1.5, 2)])
def test_roi_entry_outside(x, entry):
    with pytest.raises(ud.ArgumentValueError, match=r"lies outside the scan|needs one integer"):
        ud.run_udf(x, Nav(), roi=[(entry, True)])


def test_roi_with_too_many_slices(x):
    with pytest.raises(ud.ArgumentValueError, match=r"does not index a scan"):
        ud.run_udf(x, Nav(), roi=np.s_[1:2, 1:2, 1:2])


@pytest.mark.parametrize("roi", ["all", b"all", {"y": 1}, {1, 2}])
def test_roi_of_nonsense(x, roi):
    with pytest.raises(
        ud.ArgumentTypeError, match=r"cannot use .* as a roi; a roi is|is a dictionary of names"
    ):
        ud.run_udf(x, Nav(), roi=roi)


def test_ragged_roi(x):
    with pytest.raises(ud.UDFError, match=r"roi"):
        ud.run_udf(x, Nav(), roi=[[True, False], [True]])


def test_roi_that_is_lazy(x):
    with pytest.raises(
        ud.ArgumentTypeError, match=r"lazy dask collection: write roi = roi.compute\(\) on a"
    ):
        ud.run_udf(x, Nav(), roi=da.ones((4, 6), dtype=bool))


@pytest.mark.point(22)
def test_roi_of_another_dtype_warns(x):
    with pytest.warns(ud.UDFWarning, match=r"the roi has dtype int64 and is cast to bool"):
        ud.run_udf(x, Nav(), roi=np.ones((4, 6), dtype=np.int64))


# The UDFs.


def test_class_in_place_of_an_instance(x):
    with pytest.raises(ud.ArgumentTypeError, match=r"got the class SumUDF: write SumUDF\("):
        ud.run_udf(x, SumUDF)


@pytest.mark.parametrize("value", [np.sum, None, "sum", 3, [np.sum], [SumUDF(), None]])
def test_not_a_udf(x, value):
    with pytest.raises(ud.ArgumentTypeError, match=r"subclass udfdask.UDF.*map_frames"):
        ud.run_udf(x, value)


@pytest.mark.parametrize("value", [[], ()])
def test_no_udf(x, value):
    with pytest.raises(ud.ArgumentValueError, match=r"empty list"):
        ud.run_udf(x, value)


@pytest.mark.parametrize(
    "value", [{SumUDF()}, frozenset(), (u for u in [SumUDF()]), iter([SumUDF()])]
)
def test_udfs_without_an_order(x, value):
    with pytest.raises(ud.ArgumentTypeError, match=r"list or tuple of UDFs, got a .*order"):
        ud.run_udf(x, value)


@pytest.mark.point(6)
def test_no_processing_method(x):
    class Idle(ud.UDF):
        def get_result_buffers(self):
            return {"v": self.buffer(kind="nav")}

    with pytest.raises(TypeError, match=r"Idle has no processing method: implement one of"):
        ud.run_udf(x, Idle())


@pytest.mark.point(6)
@pytest.mark.parametrize("value", ["frame", None, "tile", 1])
def test_wrong_method(x, value):
    class Chooses(Nav):
        def get_method(self):
            return value

    with pytest.raises(ud.UDFError, match=r"must return a member of UDF.UDF_METHOD, not"):
        ud.run_udf(x, Chooses())


@pytest.mark.point(6)
def test_method_that_is_not_there(x):
    class Chooses(Nav):
        def get_method(self):
            return self.UDF_METHOD.TILE

    with pytest.raises(ud.UDFError, match=r"there is no process_tile\(\)"):
        ud.run_udf(x, Chooses())


def test_no_declaration(x):
    class Silent(ud.UDF):
        def process_frame(self, frame):
            pass

    with pytest.raises(NotImplementedError, match=r"Silent must implement get_result_buffers"):
        ud.run_udf(x, Silent())


@pytest.mark.parametrize("value", [None, [], "v", 3])
def test_declaration_that_is_no_dictionary(x, value):
    class Declared(Nav):
        def get_result_buffers(self):
            return value

    with pytest.raises(ud.ArgumentTypeError, match=r"must return a dictionary of self.buffer"):
        ud.run_udf(x, Declared())


@pytest.mark.parametrize("value", [None, np.zeros(3), "nav", {"kind": "nav"}])
def test_declaration_of_no_buffer(x, value):
    class Declared(Nav):
        def get_result_buffers(self):
            return {"v": value}

    with pytest.raises(ud.ArgumentTypeError, match=r"declares buffer 'v' as .*use self.buffer"):
        ud.run_udf(x, Declared())


@pytest.mark.point(10)
@pytest.mark.parametrize("name", ["two words", "1st", "", 3, ("a", "b")])
def test_name_that_is_no_identifier(x, name):
    class Declared(Nav):
        def get_result_buffers(self):
            return {name: self.buffer(kind="nav")}

    with pytest.raises(ud.ArgumentValueError, match=r"names must be Python identifiers"):
        ud.run_udf(x, Declared())


@pytest.mark.point(15)
def test_missing_merge_names_the_buffers(x):
    class Lacks(ud.UDF):
        def get_result_buffers(self):
            return {
                "rows": self.buffer(kind="nav"),
                "total": self.buffer(kind="sig"),
                "secret": self.buffer(kind="single", use="private"),
                "later": self.buffer(kind="sig", use="result_only"),
            }

        def process_frame(self, frame):
            pass

        def get_results(self):
            return {"later": self.results.total}

    with pytest.raises(NotImplementedError, match=r"cannot combine: total, secret \(kind"):
        ud.run_udf(x, Lacks())


def test_result_only_without_get_results(x):
    with pytest.raises(ud.UDFError, match=r"result_only buffers \['v'\] but has no get_results"):
        ud.run_udf(x, Declares({"use": "result_only"}))


# buffer().


@pytest.mark.point(8)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kind": "navigation"}, ud.ArgumentValueError, "buffer kind must be one of 'nav', 'sig'"),
        ({"kind": None}, ud.ArgumentValueError, "buffer kind must be one of"),
        ({"kind": ["nav"]}, ud.ArgumentValueError, "buffer kind must be one of"),
        ({"use": "public"}, ud.ArgumentValueError, "buffer use must be None, 'private' or"),
        ({"use": ["private"]}, ud.ArgumentValueError, "buffer use must be None, 'private' or"),
        ({"where": "gpu"}, ud.ArgumentValueError, "buffer where must be None or 'device'"),
        ({"extra_shape": (-1,)}, ud.ArgumentValueError, "extra_shape must be a tuple of non-neg"),
        ({"extra_shape": "ab"}, ud.ArgumentValueError, "extra_shape must be a tuple of non-neg"),
        ({"extra_shape": (None,)}, ud.ArgumentValueError, "extra_shape must be a tuple of"),
        ({"extra_shape": (2.5,)}, ud.ArgumentValueError, "extra_shape must be a tuple of"),
        ({"extra_shape": None}, ud.ArgumentValueError, "extra_shape must be a tuple of"),
        ({"dtype": "float31"}, ud.ArgumentTypeError, "buffer dtype 'float31' is not a NumPy dtype"),
        ({"dtype": 3}, ud.ArgumentTypeError, "buffer dtype 3 is not a NumPy dtype"),
        ({"dtype": "int32", "fill_value": "x"}, ud.ArgumentValueError, "fill_value 'x' does not"),
        ({"dtype": "int32", "fill_value": np.nan}, ud.ArgumentValueError, "fill_value nan does"),
        ({"dtype": "uint8", "fill_value": -1}, ud.ArgumentValueError, "fill_value -1 does not"),
        ({"dtype": "uint8", "fill_value": 300}, ud.ArgumentValueError, "fill_value 300 does not"),
        ({"dtype": "int32", "fill_value": 1.5}, ud.ArgumentValueError, "it would become .*1"),
        ({"dtype": "S2", "fill_value": b"abc"}, ud.ArgumentValueError, "it would become .*ab"),
        ({"dtype": "float32", "fill_value": [1, 2]}, ud.ArgumentValueError, "fill_value"),
    ],
)
def test_bad_buffer(x, arguments, error, message):
    with pytest.raises(error, match=message):
        ud.run_udf(x, Declares(arguments))


# Preferences and options.


@pytest.mark.point(20)
@pytest.mark.parametrize("key", ["depth", "total_size"])
@pytest.mark.parametrize("value", [0, -1, None, "16", np.nan, [4]])
def test_bad_tiling_preferences(x, key, value):
    class Prefers(Nav):
        def get_tiling_preferences(self):
            return {key: value}

    with pytest.raises(ud.ArgumentValueError, match=rf"returned {key}=.*positive number"):
        ud.run_udf(x, Prefers())


@pytest.mark.parametrize("value", [None, 16, "depth"])
def test_tiling_preferences_that_are_no_dictionary(x, value):
    class Prefers(Nav):
        def get_tiling_preferences(self):
            return value

    with pytest.raises(ud.ArgumentTypeError, match=r"get_tiling_preferences.* dictionary"):
        ud.run_udf(x, Prefers())


@pytest.mark.parametrize("value", ["float31", 3, [("a", "f4")], "U5", "datetime64[s]"])
def test_bad_preferred_dtype(x, value):
    class Prefers(Nav):
        def get_preferred_input_dtype(self):
            return value

    with pytest.raises(ud.ArgumentTypeError, match=r"get_preferred_input_dtype.*does not combine"):
        ud.run_udf(x, Prefers())


@pytest.mark.parametrize("backends", ["cupyx", "tensorflow", ["cupyx"], [], ()])
def test_bad_backends(x, backends):
    with pytest.raises(ud.ArgumentValueError, match=r"backends="):
        ud.run_udf(x, Nav(), backends=backends)


@pytest.mark.parametrize("backends", ["numpy", ["numpy"], ("numpy", "sparse.COO")])
def test_good_backends(x, backends):
    assert ud.run_udf(x, Nav(), backends=backends)["v"].shape == (4, 6)


def test_udf_without_a_usable_backend(x):
    class Elsewhere(Nav):
        def get_backends(self):
            return ("tensorflow",)

    with pytest.raises(ud.ArgumentValueError, match=r"Elsewhere.get_backends\(\) returned"):
        ud.run_udf(x, Elsewhere())


@pytest.mark.parametrize("corrections", [np.zeros((8, 8)), "dark"])
def test_bad_corrections(x, corrections):
    with pytest.raises(ud.UDFError, match=r"corrections"):
        ud.run_udf(x, Nav(), corrections=corrections)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (1, ud.ArgumentValueError),
        (0, ud.ArgumentValueError),
        (-8, ud.ArgumentValueError),
        (True, ud.ArgumentTypeError),
        ("8", ud.ArgumentTypeError),
        (8.0, ud.ArgumentTypeError),
    ],
)
def test_bad_split_every(x, value, error):
    message = "must be .*at least 2, or False, not"
    with pytest.raises(error, match=rf"split_every {message}"):
        ud.run_udf(x, SumUDF(), split_every=value)

    class Splits(SumUDF):
        split_every = value

    with pytest.raises(error, match=rf"Splits\.split_every {message}"):
        ud.run_udf(x, Splits())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tile-bytes", 0),
        ("tile-bytes", "nonsense"),
        ("threads-per-task", 0),
        ("threads-per-task", "many"),
        ("worker-memory", -1),
        ("split-every", "many"),
        ("split-every", 1),
    ],
)
def test_bad_config(x, name, value):
    with (
        dask.config.set({f"udfdask.{name}": value}),
        pytest.raises(ud.UDFError, match=rf"udfdask.{name}"),
    ):
        ud.run_udf(x, Nav())


@pytest.mark.parametrize("run", [ud.run_udf, ud.explain])
def test_both_doors_check(run):
    with pytest.raises(ud.ArgumentTypeError, match=r"from_array"):
        run(np.zeros((2, 2, 4, 4)), Nav())


# What get_results and merge_all return; a run, because only they can know.


@pytest.mark.point(11)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_undeclared_result(zeros, scheduler):
    res = ud.run_udf(zeros, Returns({"w": np.zeros(24)}))
    with pytest.raises(KeyError, match=r"returned 'w', which is not declared.*declared are"):
        res.compute(scheduler=scheduler)


@pytest.mark.point(11)
@pytest.mark.parametrize(
    ("returned", "buffers", "error", "message"),
    [
        (
            {"p": np.zeros(24)},
            {"v": {"kind": "nav"}, "p": {"kind": "nav", "use": "private"}},
            ud.UDFError,
            "returned 'p', which is declared use='private'",
        ),
        (
            {},
            {"late": {"kind": "nav", "use": "result_only"}},
            ud.UDFError,
            "left out 'late', which is declared use='result_only'",
        ),
        ({"v": np.zeros(24, "int64")}, None, ud.UDFError, "dtype int64, but the buffer is decl"),
        ({"v": np.zeros(24, "complex64")}, None, ud.UDFError, "dtype complex64, but the buffer"),
        ({"v": np.zeros(23)}, None, ud.ArgumentValueError, r"shape \(23,\), where \(24,\) was"),
        ({"v": 1.0}, None, ud.ArgumentValueError, r"shape \(\), where \(24,\) was expected"),
        ([1, 2], None, ud.ArgumentTypeError, "must return a dictionary of arrays, not list"),
        (None, None, ud.ArgumentTypeError, "must return a dictionary of arrays, not NoneType"),
    ],
)
def test_bad_results(zeros, returned, buffers, error, message):
    res = ud.run_udf(zeros, Returns(returned, buffers))
    with pytest.raises(error, match=message):
        res.compute(scheduler="synchronous")


@pytest.mark.point(14)
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones(24, dtype="int64"), "a mask of dtype int64: a valid mask must be boolean"),
        (np.ones(23, dtype=bool), r"a mask of shape \(23,\), which does not broadcast"),
        (1, "must be boolean"),
        (None, "must be boolean"),
    ],
)
def test_bad_mask(zeros, mask, message):
    class Masks(Nav):
        def get_results(self):
            return {"v": self.with_mask(self.results.v, mask=mask)}

    with pytest.raises(ud.InvalidMaskError, match=message):
        ud.run_udf(zeros, Masks()).compute(scheduler="synchronous")


class MergesAll(ud.UDF):
    def get_result_buffers(self):
        return {"a": self.buffer(kind="single"), "b": self.buffer(kind="single")}

    def process_frame(self, frame):
        pass


@pytest.mark.point(17)
@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        ({"a": [0.0], "b": [0.0], "c": 1}, ValueError, "returned 'c', which is not a buffer"),
        ({"a": [0.0]}, ud.UDFError, "left out buffer 'b'.*split_every=False"),
        ([1], TypeError, "must return a dictionary of arrays, not list"),
        ({"a": [0.0, 1.0], "b": [0.0]}, ValueError, r"shape \(2,\), where \(1,\) was expected"),
        ({"a": [1], "b": [0.0]}, ud.UDFError, "dtype int64, but the buffer is declared"),
    ],
)
def test_bad_merge_all(zeros, returned, error, message):
    class Merges(MergesAll):
        def merge_all(self, ordered_results):
            return returned

    with pytest.raises(error, match=message):
        ud.run_udf(zeros, Merges()).compute(scheduler="synchronous")


def test_merge_all_may_leave_out_a_buffer_in_one_step(zeros):
    class Merges(MergesAll):
        split_every = False

        def merge_all(self, ordered_results):
            return {"a": [3.0]}

    done = ud.run_udf(zeros, Merges()).compute(scheduler="synchronous")
    assert done["a"] == 3
    assert done["b"] == 0


def test_merge_all_that_is_not_associative(zeros):
    class Averages(ud.UDF):
        def get_result_buffers(self):
            return {"v": self.buffer(kind="single", dtype="float64")}

        def process_partition(self, partition):
            self.results.v[:] = self.meta.coordinates[0, 0] ** 2

        def merge_all(self, ordered_results):
            return {"v": np.mean([r.v for r in ordered_results.values()], axis=0)}

    rows = zeros.rechunk((1, 6, 8, 8))
    with pytest.raises(ud.UDFError, match=r"not associative: buffer 'v'.*split_every=False"):
        ud.run_udf(rows, Averages()).compute(scheduler="synchronous")
    done = ud.run_udf(rows, Averages(), split_every=False).compute(scheduler="synchronous")
    assert done["v"] == np.mean([0, 1, 4, 9])


@pytest.mark.point(15)
def test_unsafe_default_merge_is_a_type_error():
    udf = Nav()
    dest = type("Dest", (), {"get": lambda self, name: np.zeros(2, "float32")})()
    with pytest.raises(TypeError, match=r"cannot merge buffer 'v' of dtype float64 safely"):
        udf.merge(dest, {"v": np.zeros(2)})


# Things asked for before they exist, and names that do not.


def test_attributes_before_they_exist():
    udf = Nav()
    for name in ("meta", "results", "task_data"):
        with pytest.raises(ud.NotAvailableError, match=rf"self\.{name} does not exist yet"):
            getattr(udf, name)
    with pytest.raises(AttributeError, match=r"'Nav' object has no attribute 'nonsense'"):
        _ = udf.nonsense


@pytest.mark.point(1)
def test_params_before_init():
    class Early(Nav):
        def __init__(self):
            _ = self.params

    with pytest.raises(ud.NotAvailableError, match=r"super\(\).__init__"):
        Early()


class Forgets(Nav):
    def __init__(self, level, *more, width=3, **rest):
        self.level = level


class InheritsForgets(Forgets):
    pass


class ForgetsEverything(Nav):
    def __init__(self):
        pass


@dataclasses.dataclass
class ForgetsAsDataclass(Nav):
    level: int
    width: int = 3


@pytest.mark.parametrize(
    ("udf", "message"),
    [
        (Forgets(1), "Forgets cannot run, because Forgets.__init__ does not call super().__init__"),
        (Forgets(1), "add super().__init__(level=level, width=width, **rest) to it"),
        (InheritsForgets(1), "InheritsForgets cannot run, because Forgets.__init__ does not call"),
        (ForgetsEverything(), "add super().__init__() to it"),
        (
            ForgetsAsDataclass(1),
            "__post_init__(self) that calls super().__init__(level=self.level, width=self.width)",
        ),
    ],
)
def test_init_without_super(x, udf, message):
    for use in (ud.run_udf, ud.explain, ud.run_udf_iter):
        with pytest.raises(ud.NotAvailableError, match=re.escape(message)):
            use(x, udf)
    if not dataclasses.is_dataclass(udf):
        assert repr(udf) == f"{type(udf).__name__}()"


def test_the_remedies_for_init_without_super_work(zeros):
    class Remembers(Nav):
        def __init__(self, level, *more, width=3, **rest):
            super().__init__(level=level, width=width, **rest)

    @dataclasses.dataclass
    class RemembersAsDataclass(Nav):
        level: int
        width: int = 3

        def __post_init__(self):
            super().__init__(level=self.level, width=self.width)

    for udf in (Remembers(1, a=2), RemembersAsDataclass(1)):
        assert udf.params.level == 1
        assert not ud.run_udf(zeros, udf).compute()["v"].any()


@pytest.mark.point(19)
@pytest.mark.parametrize(
    "name",
    ["coordinates", "slice", "sig_slice", "partition_shape", "tiling_scheme", "tiling_scheme_idx"],
)
def test_meta_of_a_piece_while_declaring(x, name):
    class Early(Nav):
        def get_result_buffers(self):
            getattr(self.meta, name)

    with pytest.raises(ud.NotAvailableError, match=rf"meta\.{name} does not exist here"):
        ud.run_udf(x, Early())


def test_input_dtype_while_it_is_being_chosen(x):
    class Early(Nav):
        def get_preferred_input_dtype(self):
            return self.meta.input_dtype

    with pytest.raises(ud.NotAvailableError, match=r"meta\.input_dtype does not exist here"):
        ud.run_udf(x, Early())


def test_unknown_buffer_of_a_result(x):
    res = ud.run_udf(x, Nav())
    for lookup in (res, res.raw, res.valid_mask):
        with pytest.raises(KeyError, match=r"Nav has no result 'w'; there are \['v'\]"):
            lookup["w"]


@pytest.mark.point(12)
def test_masked_of_a_lazy_result(x):
    with pytest.raises(ud.UDFError, match=r"needs a computed result: call \.compute\(\) first"):
        ud.run_udf(x, Nav()).masked["v"]


# Warnings of the plan.


def test_chunk_too_large_for_memory(x):
    with (
        dask.config.set({"udfdask.worker-memory": 8192}),
        pytest.warns(
            ud.UDFWarning,
            match=r"3\.00 kiB \(12 frames of 256 B\), more than .*2\.00 kiB.*"
            r"array\.rechunk\(\(1, 6, -1, -1\)\)",
        ),
    ):
        ud.run_udf(x, Nav())


def test_a_rechunk_that_is_advised_is_smaller():
    x = da.zeros((64, 64, 256, 256), chunks=(64, 64, 256, 256), dtype="float32")  # 1 GiB
    with (
        dask.config.set({"udfdask.worker-memory": "2 GiB"}),
        pytest.warns(ud.UDFWarning, match=r"1\.00 GiB.*512\.00 MiB.*rechunk\(\((.*)\)\)") as caught,
    ):
        ud.run_udf(x, Nav())
    call = str(caught[0].message).split("array.rechunk(")[1].split(") would")[0]
    better = x.rechunk(eval(call))  # what a user would type
    assert np.prod(better.chunksize) * 4 <= 128 << 20
    with dask.config.set({"udfdask.worker-memory": "2 GiB"}):
        ud.run_udf(better, Nav())


def test_more_than_four_signal_blocks():
    x = da.zeros((400, 600, 8, 8), chunks=(200, 600, 4, 2))
    with pytest.warns(ud.UDFWarning, match=r"a task takes 8 signal chunks.*Nav cannot.*rechunk"):
        ud.run_udf(x, [Nav(), SumUDF()])


def test_no_warning_where_udfs_chain():
    x = da.zeros((4, 6, 8, 8), chunks=(2, 6, 4, 2))
    assert len(ud.run_udf(x, [SumUDF(), SumSigUDF()])) == 2


def test_no_warning_for_four_signal_blocks(recwarn):
    result = ud.run_udf(da.zeros((4, 6, 8, 8), chunks=(2, 6, 4, 4)), Nav())
    assert not recwarn.list
    assert not result.explain().warnings


@pytest.mark.full
@pytest.mark.parametrize(
    ("shape", "chunks", "message", "tasks"),
    [
        (
            (128, 128, 64, 64),
            (1, 1, 64, 64),
            r"^16384 blocks of 8\.00 kiB make at least 32768 tasks",
            2,
        ),
        (
            (256, 256, 256, 256),
            (1, 1, 256, 256),
            r"^65536 blocks of 128\.00 kiB make at least 131072 tasks",
            128,
        ),
        ((1 << 20, 512), (16, 512), r"^65536 blocks of 16\.00 kiB", 16),
        (
            (64, 64, 64, 64),
            (1, 64, 8, 2),
            r"^16384 blocks of 2\.00 kiB",
            1,
        ),
        (
            (400, 256, 2048, 1024),
            (1, 2, 2048, 1024),
            r"^51200 blocks of 8\.00 MiB",
            6400,
        ),
    ],
    ids=["one frame", "many frames", "spectra", "cut signal", "large frames"],
)
def test_many_small_blocks(shape, chunks, message, tasks):
    sig_dims = 1 if len(shape) == 2 else 2
    x = da.zeros(shape, chunks=chunks, dtype="uint16")
    (text,) = make_plan(x, [SumUDF()], sig_dims=sig_dims).warnings
    assert re.search(message, text)
    assert f"merge_small='64 MiB' loads and processes them in {tasks} task" in text
    assert not make_plan(x, [SumUDF()], sig_dims=sig_dims, merge_small="64 MiB").warnings


@pytest.mark.parametrize(
    ("shape", "chunks", "roi"),
    [
        ((64, 64, 64, 64), (1, 1, 64, 64), None),  # a small scan: two seconds at most
        ((200, 400, 512, 512), (2, 4, 512, 512), None),  # blocks of 4 MiB, 20,000 tasks
        ((400, 256, 2048, 1024), (1, 4, 2048, 1024), None),  # of 16 MiB
        ((128, 128, 64, 64), (1, 1, 64, 64), np.s_[:8]),  # a region of few blocks
    ],
)
def test_no_warning_where_blocks_are_few_or_large(shape, chunks, roi):
    x = da.zeros(shape, chunks=chunks, dtype="uint16")
    assert not make_plan(x, [SumUDF()], roi=roi).warnings


def test_many_small_blocks_warn():
    x = da.zeros((10_001, 4, 4), chunks=(1, 4, 4))
    with pytest.warns(ud.UDFWarning, match=r"^10001 blocks .*merge_small='64 MiB' .* in 1 task"):
        ud.run_udf(x, SumUDF())


@pytest.mark.point(13)
def test_gathering_nav_results_warns(x):
    with (
        dask.config.set({"udfdask.worker-memory": 16000}),
        pytest.warns(ud.UDFWarning, match=r"gathered in one task.*elementwise_results = True"),
    ):
        ud.run_udf(
            x, Returns({}, {"v": {"kind": "nav", "extra_shape": (100,), "dtype": "float64"}})
        )


def test_pick_warns_above_256_mib():
    x = da.zeros((40, 1024, 1024), chunks=(10, 1024, 1024), dtype="float64")  # 320 MiB
    with pytest.warns(ud.UDFWarning, match=r"PickUDF holds 40 frames, 320 MiB"):
        ud.run_udf(x, PickUDF())
    ud.run_udf(x, PickUDF(), roi=np.s_[:32])


def test_nothing_ran(x):
    """The array of these tests raises when computed: the checks above did not compute it."""
    with pytest.raises(AssertionError, match=r"a block was computed"):
        ud.run_udf(x, NoOpUDF()).compute(scheduler="synchronous")
