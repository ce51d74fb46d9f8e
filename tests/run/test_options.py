"""The options of all entry points are shown, documented, and checked in the same way."""

import inspect

import dask.array as da
import pytest

import udfdask as ud
from run_doors import DOORS, methods
from udfdask.plan.arguments import Options
from udfdask.run.options import IterOptions, RunOptions
from udfdask.run.progressive import ProgressiveRun
from udfdask.scheduling.compute import OPTIONS
from udfdask.udfs import SumUDF

X = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))
RUNS = [(door, name) for door in DOORS for name in ("run_udf", "explain", "run_udf_iter")]
EVERY = pytest.mark.parametrize(("door", "name"), RUNS)


def keywords(function):
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]


@EVERY
def test_each_option_is_shown_with_its_default(door, name):
    shown = inspect.signature(getattr(methods(door, X), name)).parameters
    options = IterOptions if name == "run_udf_iter" else RunOptions
    defaults = inspect.signature(Options).parameters | inspect.signature(ProgressiveRun).parameters
    for option in set(options.__annotations__) - OPTIONS:
        assert shown[option].default == defaults[option].default
    assert ("kwargs" in shown) == (name == "run_udf_iter")
    assert "options" not in shown


@EVERY
def test_a_misspelled_option_is_an_error_that_names_the_right_one(door, name):
    call = getattr(methods(door, X), name)
    for option in keywords(call)[1:]:
        misspelled = option[:-1] + "x"
        match = rf"^{name}\(\) has no argument '{misspelled}'; did you mean '{option}'\?"
        with pytest.raises(ud.ArgumentTypeError, match=match):
            call(SumUDF(), **{misspelled: None})
    with pytest.raises(ud.ArgumentTypeError, match=r"no argument 'zzzz'\. .*(priority|roi, )"):
        call(SumUDF(), zzzz=1)


@EVERY
def test_each_option_arrives(door, name):
    call = getattr(methods(door, X), name)
    with pytest.raises(ud.ArgumentTypeError, match="CorrectionSet"):
        call(SumUDF(), corrections=3)
    with pytest.raises(ud.ArgumentTypeError, match="descan takes"):
        call(SumUDF(), descan="abacus")
    with pytest.raises(ud.ArgumentValueError, match="abacus"):
        call(SumUDF(), backends="abacus")
    with pytest.raises(ud.ArgumentValueError, match="split_every"):
        call(SumUDF(), split_every=1)


def test_argument_of_the_function_that_is_mapped():
    def scaled(frame, /, factor):
        return frame * factor

    assert ud.map_frames(X, scaled, factor=2).dtype == float
    with pytest.raises(TypeError, match="unexpected keyword argument 'factr'"):
        X.udf.map_frames(scaled, factr=1)
