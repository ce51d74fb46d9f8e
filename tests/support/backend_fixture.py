"""Runs the tests of the built-ins and of the interface over chunks of every backend.

The rule: a test in `tests/udfs` or `tests/udf/interface` has all sets of its parameters on NumPy
chunks, as it is written. On each other backend it has one set, another one on each, so that every
function meets every backend and the suite does not take ten times as long. The default suite has
NumPy chunks alone here.

It works at the doors: what runs, follows and explains UDFs is given the array of the test in
other chunks, while the test computes what it expects from its own. Chunks that are matrices exist
of arrays with one navigation and one signal axis alone: those backends are for the tests of
`MATRIX_TESTS`. What backends have no say in stands in `UNCHANGED`, with a reason.
"""

import functools
import sys
from importlib import import_module

import dask.array as da
import pytest

from chunk_backends import (
    ANY_SHAPE,
    MATRICES,
    ON_DEVICE,
    STAND_IN,
    can_hold,
    chunks_in,
    why_no_device,
)
from stand_in import numpy_standing_in_for_cupy
from suites import is_full
from udfdask.advice import Door
from udfdask.backends.table import backend_of, to_host

DOORS = {
    "run_for": "udfdask.run.run_udf",  # what run_udf and the accessors call
    "explain_for": "udfdask.run.run_udf",
    "run_udf_iter": "udfdask.run.progressive",
}
ROOMS = ("udfs", "interface")

UNCHANGED = {
    # no UDF is run, or a method is called on arrays of its own
    "interface/test_names",
    "udfs/test_find_center",
    "udfs/test_untouched_partials",
    "udfs/test_record::test_many_open_it_at_once",
    # the run is in a process of its own, or it counts what a process makes once
    "interface/test_hooks::test_classes_of_a_notebook_travel",
    "udfs/test_apply_masks::test_the_plan_need_not_compute_them",
    # it makes its own chunks, of every sparse format
    "udfs/test_sparse_chunks",
    # about the dense memory of chunks: views of it, its strides, its tiles
    "interface/test_dtypes::test_data_in_the_wanted_dtype_are_not_copied",
    "udfs/test_sum::test_tiles_are_deep",
    "udfs/test_sum::test_frames_that_must_be_copied_are_copied_a_tile_at_a_time",
    "udfs/test_rings_of_small_frames",
}
NOT_ON_DEVICE = {
    # a device multiplies with dense masks: NaN outside of one makes the product NaN
    "udfs/test_apply_masks::test_mostly_empty_masks_are_multiplied_sparse",
    # xarray compares the lazy result with data on the host
    "udfs/test_picked_axes::test_axes_of_a_dataset",
    # cuBLAS adds up float32 as it likes
    "udfs/test_apply_masks::test_products_are_as_accurate_as_pairwise_sums",
}
NOT_ON_STAND_IN = {
    # tasks run in other processes, where nothing stands in for CuPy
    "interface/test_hooks::test_mixins_and_lambdas_made_in_a_function",
    "udfs/test_apply_masks::test_on_a_cluster",
    "udfs/test_record::test_a_cluster",
    "udfs/test_record::test_processes",
}
ELSEWHERE = {"processes", "distributed", "frisky"}
"""Schedulers whose tasks run in other processes."""
MATRIX_TESTS = {
    "interface/test_shapes::test_any_number_of_axes",
    "udfs/test_apply_masks::test_spectra",
    "udfs/test_ready_made::test_spectra",
}
"""Tests over arrays with one navigation and one signal axis, which can be cut into matrices."""


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    """Give the tests that the rule is about a parameter more, which they need not name."""
    here = metafunc.definition.path
    if here.parent.name not in ROOMS:
        return (yield)
    test = f"{here.parent.name}/{here.stem}::{metafunc.function.__name__}"
    backends = backends_of(test) if is_full(metafunc.config) else ("numpy",)
    metafunc.parametrize("chunk_backend", [_param(b) for b in backends], indirect=True)
    result = yield
    metafunc._calls = one_set_each(metafunc._calls, backends[1:])
    return result


def one_set_each(calls, backends):
    """All sets of parameters on NumPy chunks, and one on chunks of each of the others."""
    kept = [call for call in calls if call.params["chunk_backend"] == "numpy"]
    for place, backend in enumerate(backends):
        same = [call for call in calls if call.params["chunk_backend"] == backend]
        # nothing stands in for CuPy in other processes, and starting some takes seconds
        usable = [call for call in same if not ELSEWHERE.intersection(call.id.split("-"))] or same
        kept.append(usable[place * len(usable) // len(backends)])
    return kept


def backends_of(test):
    if test in UNCHANGED or test.partition("::")[0] in UNCHANGED:
        return ("numpy",)
    matrices = (*MATRICES, *ON_DEVICE[1:]) if test in MATRIX_TESTS else ()
    device = () if test in NOT_ON_DEVICE else ON_DEVICE[:1]
    stand_in = () if test in NOT_ON_DEVICE or test in NOT_ON_STAND_IN else (STAND_IN,)
    return (*ANY_SHAPE, *stand_in, *device, *matrices)


def _param(backend):
    """A backend, with the last part of its name, and with the mark of those on a device."""
    short = backend.removeprefix("scipy.").removeprefix("sparse.").replace("scipy.sparse.", "")
    return pytest.param(backend, id=short, marks=[pytest.mark.gpu] if backend in ON_DEVICE else [])


@pytest.fixture(autouse=True)
def chunk_backend(request, monkeypatch):
    """The name of what chunks are made of; the doors see to that."""
    name = getattr(request, "param", "numpy")
    if name == "numpy":
        yield name
        return
    missing = why_no_device() if name in ON_DEVICE else None
    if missing:
        pytest.skip(missing)
    if name == STAND_IN:
        request.getfixturevalue("stand_in_for_cupy")
    if name == STAND_IN or name in ON_DEVICE:
        _bring_to_host(monkeypatch)
    for door, room in DOORS.items():
        _replace(monkeypatch, door, getattr(import_module(room), door), name)
    yield name


@pytest.fixture
def stand_in_for_cupy():
    with numpy_standing_in_for_cupy():
        yield


def _bring_to_host(monkeypatch):
    """Let computed arrays be NumPy's, which tests compare with."""
    original = da.Array.__dask_postcompute__

    def on_host(self):
        finalize, extra = original(self)

        def brought(results, *args):
            array = finalize(results, *args)
            return to_host(array) if backend_of(array).on_device else array

        return brought, extra

    monkeypatch.setattr(da.Array, "__dask_postcompute__", on_host)


def _replace(monkeypatch, door, original, backend):
    """Put a door that changes chunks wherever the original is known."""

    @functools.wraps(original)
    def changing(*args, sig_dims=None, **kwargs):
        place = 1 if isinstance(args[0], Door) else 0
        array = args[place]
        sig_dims = 2 if sig_dims is None and isinstance(array, da.Array) else sig_dims
        if isinstance(array, da.Array) and can_hold(backend, array, sig_dims):
            array = chunks_in(array, backend, sig_dims)
        return original(*args[:place], array, *args[place + 1 :], sig_dims=sig_dims, **kwargs)

    for module in list(sys.modules.values()):
        if vars(module).get(door) is original:
            monkeypatch.setattr(module, door, changing)
