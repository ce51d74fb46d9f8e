"""Laws 1 and 8: building computes nothing; same in, same name; anything else in, another name."""

import dataclasses
import enum
import functools
import inspect
import textwrap

import dask
import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from suites import without_address
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.tiling import TilingScheme
from udfdask.plan.plan import Plan, make_plan
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.eager_run import make_recipe
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs import AutoUDF, NoOpUDF, PickUDF, SumSigUDF, SumUDF

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

SHAPE, CHUNKS = (4, 5, 3, 2), (2, 3, 3, 2)


def array(dtype="int64", chunks=CHUNKS):
    return da.zeros(SHAPE, dtype=dtype, chunks=chunks)


def names(result):
    """Every layer name of a lazy result, without those of the array."""
    return {k: tuple(sorted(result[k].dask.layers)) for k in result}


def name_of(udf, **options):
    x = options.pop("x", None)
    result = ud.run_udf(array() if x is None else x, udf, **options)
    return tuple(result[k].name for k in sorted(result))


class TestNothingIsComputed:
    def unreadable(self):
        def load(block):
            raise AssertionError("data were read")

        return array().map_blocks(load, dtype="int64", meta=np.empty((0,) * 4, dtype="int64"))

    @pytest.mark.parametrize("cls", [*udf_zoo.ZOO, NoOpUDF, PickUDF, SumSigUDF, SumUDF])
    def test_run_udf(self, cls):
        with raise_if_dask_computes():
            result = ud.run_udf(self.unreadable(), cls(), roi=np.s_[1:3, :2])
            repr(result)
            str(result.explain())
            for name in result:
                assert isinstance(result[name], da.Array)
                assert isinstance(result.raw[name], da.Array)
                assert isinstance(result.valid_mask[name], da.Array)
                repr(result[name])
            list(result.raw), list(result.valid_mask), dict(result)
            result.__dask_graph__()
            result.__dask_keys__()

    def test_several_udfs_and_chained_results(self):
        with raise_if_dask_computes():
            x = self.unreadable()
            sums, total = ud.run_udf(x, [SumSigUDF(), SumUDF()])
            (sums["intensity"] > 3).sum()
            ud.run_udf(x, udf_zoo.Floats(factor=2.0))
            ud.explain(x, SumUDF())
            assert len(dask.optimize(sums, total)) == 2

    def test_lazy_parameters(self):
        from counting import MeanFrame, SubtractMean

        with raise_if_dask_computes():
            x = self.unreadable()
            mean = ud.run_udf(x, MeanFrame())["mean"]
            assert ud.run_udf(x, SubtractMean(mean=mean)).explain().passes == 2

    def test_map_frames(self):
        with raise_if_dask_computes():
            ud.map_frames(self.unreadable(), np.sum)
            ud.map_frames(self.unreadable(), np.sum, output_shape=(), output_dtype="f4")
            ragged = ud.map_frames(self.unreadable(), np.nonzero, ragged=True)
        assert ragged.dtype == object

    def test_an_auto_udf(self):
        with raise_if_dask_computes():
            assert ud.run_udf(self.unreadable(), AutoUDF(f=np.sum))["result"].dtype == "f8"

    def test_only_declaring_methods_run(self):
        called = []

        class Tells(udf_zoo.ResultsOfAll):
            pass

        hooks = [n for n, _ in inspect.getmembers(ud.UDF, inspect.isfunction) if n[0] != "_"]
        hooks += ["process_tile", "merge", "merge_all"]
        for hook in set(hooks) & set(dir(udf_zoo.ResultsOfAll)):
            inner = getattr(udf_zoo.ResultsOfAll, hook)

            def told(self, *args, _inner=inner, _hook=hook, **kwargs):
                called.append(_hook)
                return _inner(self, *args, **kwargs)

            setattr(Tells, hook, told)
        ud.run_udf(array(), Tells())
        assert set(called) <= {
            "get_result_buffers",
            "get_result_axes",
            "get_result_units",
            "get_preferred_input_dtype",
            "get_backends",
            "get_tiling_preferences",
            "get_method",
            "buffer",
        }

    def test_the_fence_itself(self):
        with raise_if_dask_computes():
            with pytest.raises(AssertionError, match="where 0 are allowed"):
                ud.run_udf(array(), SumUDF()).compute()
            with pytest.raises(AssertionError, match="where 0 are allowed"):
                ud.compute(ud.run_udf(array(), SumUDF()))
        with raise_if_dask_computes(allowed=1):
            ud.run_udf(array(), SumUDF()).compute()


def unreadable_block(block):
    raise AssertionError("data were read")


@pytest.mark.parametrize("cls", [udf_zoo.TileTree, udf_zoo.ResultsOfAll, udf_zoo.Floats])
def test_every_kind_of_array(kind, cls):
    def run(more=0, **options):
        zeros = kind.module.zeros(SHAPE, dtype="int64", chunks=CHUNKS)
        how = {"dtype": "int64", "meta": np.empty((0,) * 4, "int64")}
        return kind.run(
            kind.wrap(zeros.map_blocks(unreadable_block, **how)) + more, cls(), **options
        )

    with raise_if_dask_computes():
        one, same, others = run(), run(), [run(1), run(roi=(1, 2))]
        assert dask.base.tokenize(one) == dask.base.tokenize(same)
        assert len(set(map(dask.base.tokenize, [one, *others]))) == 3
        for name in one:
            first, again, *rest = (kind.plain(result[name]) for result in (one, same, *others))
            assert isinstance(first, kind.module.Array)
            assert first.name == again.name
            assert first.name not in {array.name for array in rest}
        dask.optimize(*others)
        repr(one)


class TestEqual:
    @pytest.mark.parametrize("cls", udf_zoo.ZOO)
    def test_equal_in_equal_names(self, cls):
        options = {"roi": np.s_[1:3], "sig_dims": 2}
        assert names(ud.run_udf(array(), cls(), **options)) == names(
            ud.run_udf(array(), cls(), **options)
        )

    def test_several(self):
        first = ud.run_udf(array(), [SumUDF(), udf_zoo.Chain()])
        again = ud.run_udf(array(), [SumUDF(), udf_zoo.Chain()])
        assert list(map(names, first)) == list(map(names, again))

    def test_forms_of_one_roi(self):
        mask = np.zeros((4, 5), bool)
        mask[1, 2] = True
        wanted = name_of(SumUDF(), roi=mask)
        assert wanted == name_of(SumUDF(), roi=(1, 2))
        assert wanted == name_of(SumUDF(), roi=[((1, 2), True)])
        assert wanted == name_of(SumUDF(), roi=np.s_[1:2, 2:3])

    def test_equal_parameters(self):
        for make in (lambda: 1.5, lambda: np.arange(5.0), lambda: {"a": [1, (2, "b")]}):
            assert name_of(udf_zoo.Floats(factor=make())) == name_of(udf_zoo.Floats(factor=make()))

    def test_equal_code_written_twice(self):
        def make(power):
            class Powers(udf_zoo.NavSums):
                def process_tile(self, tile):
                    self.results.sums[:] = (tile**power).sum(axis=(1, 2))

            return Powers()

        assert name_of(make(2)) == name_of(make(2))
        assert name_of(make(2)) != name_of(make(3))

    def test_comments_and_line_numbers_do_not_count(self):
        plain = made("def process_tile(self, tile):\n    self.results.sums += 1")
        moved = made(
            "\n\n\ndef process_tile(self, tile):\n    # a comment\n\n    self.results.sums += 1"
        )
        assert name_of(plain) == name_of(moved)


def made(body, base=udf_zoo.NavSums, **scope):
    """An instance of a class with that body."""
    namespace: dict = {}
    exec(textwrap.dedent(body), {"np": np, "functools": functools, **scope}, namespace)
    return type("Made", (base,), namespace)()


BODY = "def process_tile(self, tile):\n    self.results.sums += tile.sum(axis=(1, 2))"


class TestAnotherName:
    base = udf_zoo.Floats

    @pytest.mark.parametrize(
        "change",
        [
            {"roi": np.s_[1:3]},
            {"roi": (1, 2)},
            {"sig_dims": 1},
            {"sig_dims": 3},
            {"x": da.zeros(SHAPE, dtype="int32", chunks=CHUNKS)},
            {"x": da.zeros(SHAPE, dtype="int64", chunks=(2, 2, 3, 2))},
            {"x": da.ones(SHAPE, dtype="int64", chunks=CHUNKS)},
        ],
        ids=without_address,
    )
    def test_each_argument(self, change):
        assert name_of(udf_zoo.FrameTree()) != name_of(udf_zoo.FrameTree(), **change)

    @pytest.mark.parametrize("split_every", [2, 3, False])
    def test_split_every(self, split_every):
        assert name_of(udf_zoo.TileTree()) != name_of(udf_zoo.TileTree(), split_every=split_every)
        with dask.config.set({"udfdask.split-every": split_every}):
            assert name_of(udf_zoo.TileTree()) == name_of(
                udf_zoo.TileTree(), split_every=split_every
            )

    def test_tile_bytes(self):
        with dask.config.set({"udfdask.tile-bytes": 8}):
            small = name_of(udf_zoo.NavSums())
        assert small != name_of(udf_zoo.NavSums())

    def test_threads(self):
        with dask.config.set({"udfdask.threads-per-task": 2}):
            two = name_of(udf_zoo.NavSums())
        assert two != name_of(udf_zoo.NavSums())

    def test_company(self):
        alone = name_of(udf_zoo.NavSums())
        first, _ = ud.run_udf(array(), [udf_zoo.NavSums(), SumUDF()])
        assert first["sums"].name != alone[0]

    def test_the_same_udf_twice_in_a_run(self):
        first, second = ud.run_udf(array(), [udf_zoo.NavSums(), udf_zoo.NavSums()])
        assert first["sums"].name != second["sums"].name

    def test_a_parameter(self):
        """`tests/names` has all kinds of values and of code."""
        assert name_of(udf_zoo.Floats(factor=1.5)) != name_of(udf_zoo.Floats(factor=1.25))

    @pytest.mark.parametrize(
        "other",
        [
            BODY.replace("+=", "-="),
            BODY.replace("(1, 2)", "(1, -1)"),
            BODY.replace("sum(axis", "max(axis"),
            BODY.replace("tile)", "tile, extra=1)"),
            BODY + "\nx = 1",
            BODY + "\nwhole_frames = True",
            BODY + "\ndef postprocess(self):\n    self.results.sums[:] = 0",
            BODY + "\n@property\ndef p(self):\n    return 1",
            BODY + "\n@staticmethod\ndef s():\n    return 1",
        ],
    )
    def test_a_line_of_the_code(self, other):
        assert name_of(made(BODY)) == name_of(made(BODY))
        assert name_of(made(BODY)) != name_of(made(other))


RECIPE = make_recipe(
    [udf_zoo.Floats()],
    shape=SHAPE,
    dtype="int64",
    nav_chunks=((2, 2), (3, 2)),
    roi=np.arange(20).reshape(4, 5) % 3 > 0,
)


def another(value):
    """A value of about the same type that is not equal."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, tuple):
        return (*value, *value) if value else ("x",)
    if isinstance(value, dict):
        return {**value, "another": 1}
    if isinstance(value, np.dtype):
        return np.dtype("S7")
    if isinstance(value, np.ndarray):
        return ~value
    if isinstance(value, type):
        return udf_zoo.NavSums
    if dataclasses.is_dataclass(value):
        first = dataclasses.fields(value)[0].name
        return dataclasses.replace(value, **{first: another(getattr(value, first))})
    if isinstance(value, enum.Enum):
        return next(v for v in type(value) if v is not value)
    if value is None:
        return 7
    raise AssertionError(f"give another {type(value)}")


PLAN = make_plan(array(), [udf_zoo.Floats()])
FIRST = RECIPE.udfs[0]
VALUES = [RECIPE, FIRST, RECIPE.grid, RECIPE.tiling, FIRST.buffers["total"], FIRST.promises]
FIELDS = [(value, f.name) for value in VALUES for f in dataclasses.fields(value)]


def test_all_that_travels_is_here():
    assert {type(v) for v in VALUES} == {
        Recipe,
        UDFRecipe,
        Grid,
        TilingScheme,
        BufferSpec,
        Promises,
    }
    assert isinstance(PLAN, Plan)


@pytest.mark.parametrize(
    ("value", "field"), FIELDS, ids=[f"{type(v).__name__}.{f}" for v, f in FIELDS]
)
def test_every_field_reaches_the_token_of_the_plan(value, field):
    changed = dataclasses.replace(value, **{field: another(getattr(value, field))})
    recipe = {
        Recipe: lambda: changed,
        Promises: lambda: dataclasses.replace(
            RECIPE, udfs=(dataclasses.replace(FIRST, promises=changed),)
        ),
        UDFRecipe: lambda: dataclasses.replace(RECIPE, udfs=(changed,)),
        Grid: lambda: dataclasses.replace(RECIPE, grid=changed),
        TilingScheme: lambda: dataclasses.replace(RECIPE, tiling=changed),
        BufferSpec: lambda: dataclasses.replace(
            RECIPE,
            udfs=(
                dataclasses.replace(
                    RECIPE.udfs[0], buffers={**RECIPE.udfs[0].buffers, "total": changed}
                ),
            ),
        ),
    }[type(value)]()
    before = dataclasses.replace(PLAN, recipe=RECIPE)
    assert before.token != dataclasses.replace(PLAN, recipe=recipe).token


def test_array_and_passes_reach_the_token_of_the_plan():
    assert PLAN.token == dataclasses.replace(PLAN).token
    assert PLAN.token != dataclasses.replace(PLAN, array_name="another").token
    assert PLAN.token != dataclasses.replace(PLAN, second_pass=True).token


def test_the_users_instance_is_not_changed():
    udf = udf_zoo.Floats(factor=3)
    before = dict(udf.__dict__)
    ud.run_udf(array(), udf).compute()
    ud.run_udf(da.zeros((2, 3), chunks=1), udf, sig_dims=1, roi=(1,)).compute()
    assert udf.__dict__ == before
