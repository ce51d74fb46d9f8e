"""Random programs give what the plain reference gives, and what is written down in NumPy."""

import itertools

import dask
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

import udfdask as ud
from array_kinds import DASK, RESULTS
from program_model import Buffer, Case, Output, Program
from program_oracle import Oracle
from program_strategies import (
    CONTRIBUTIONS,
    MERGE_KINDS,
    METHOD_KINDS,
    OWN_FORMS,
    SAME_FORMS,
    cases,
)
from suites import examples
from udf_programs import ATTRIBUTES, make_udf
from udfdask.results.result_array import ResultArray
from udfdask.testing import run_reference

# many small signal chunks in a task are what is tested here
pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


def lazy_results(case, kind):
    """The lazy results of the programs of a case, in one run."""
    array = kind.from_array(case.array(), case.chunks)
    with dask.config.set({"udfdask.tile-bytes": case.tile_bytes}):
        return kind.run(
            array,
            [make_udf(p) for p in case.programs],
            case.sig_dims,
            roi=case.roi,
            split_every=case.split_every,
        )


def assert_same(found, wanted, where):
    """Equal shape, dtype and values: exactly but for floats, which may round."""
    assert type(found) in {np.ndarray, ResultArray}, where
    assert found.shape == wanted.shape, where
    assert found.dtype == wanted.dtype, where
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted, err_msg=where)
        return
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = float(finite.max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * scale, err_msg=where)


def check_lazy(case, program, result, expected):
    """Names, shapes, dtypes and chunks are known before anything runs."""
    assert set(result) == set(expected)
    nav_chunks = case.chunks[: len(case.nav)]
    for name, wanted in expected.items():
        array, spec = result[name], result.buffers[name]
        assert array.shape == wanted.value.shape == result.valid_mask[name].shape
        assert array.dtype == wanted.value.dtype == result.raw[name].dtype
        assert result.raw[name].shape == wanted.raw.shape
        chunks = nav_chunks if spec.kind == "nav" else ()
        assert array.chunks == (*chunks, *((n,) for n in array.shape[len(chunks) :]))


def check_done(expected, done, how):
    """Values, rows, masks and fills of a computed result."""
    for name, wanted in expected.items():
        assert_same(done[name], wanted.value, f"{name} {how}")
        assert_same(np.asarray(done.raw[name]), wanted.raw, f"raw {name} {how}")
        assert_same(np.asarray(done.valid_mask[name]), wanted.mask, f"mask {name} {how}")


def check(case, client, kind=DASK):
    """Run a case on threads and on the cluster; compare with both oracles."""
    lazy = lazy_results(case, kind)
    expected = [Oracle(case, p).results() for p in case.programs]
    reference = run_reference(
        case.array(),
        [make_udf(p, lazy=False) for p in case.programs],
        sig_dims=case.sig_dims,
        roi=case.roi,
    )
    beside = [[(r.raw[n], r.valid_mask[n]) for n in r] for r in lazy]
    threads, beside = dask.compute(lazy, beside, scheduler="threads")
    workers = ud.compute(*lazy, scheduler=client)
    for k, program in enumerate(case.programs):
        assert set(reference[k]) == set(expected[k])
        for name, wanted in expected[k].items():
            assert_same(reference[k][name], wanted.value, f"{name} in the reference")
        check_lazy(case, program, lazy[k], expected[k])
        check_done(expected[k], threads[k], "on threads")
        check_done(expected[k], workers[k], "on the cluster")
        for name, (raw, mask) in zip(lazy[k], beside[k], strict=True):
            assert_same(raw, expected[k][name].raw, f"lazy raw {name}")
            assert_same(mask, expected[k][name].mask, f"lazy mask {name}")


SUM = Buffer("a")


@pytest.mark.always
@example(Case((Program((SUM,)),), (1,), 1, ((1,),), roi=np.array(False)))  # one frame, not chosen
@example(  # rows in flattened order, chunks not
    Case((Program((SUM,), (Output("here", "here"),)),), (2, 2, 1), 1, ((2,), (1, 1), (1,)))
)
@given(case=cases())
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
def test_two_hundred_programs_agree(client, case):
    check(case, client)


def generated(count):
    """So many cases as the strategy makes them; the first is the one that examples shrink to."""
    found = []
    settings_ = settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    def keep(case):
        found.append(case)

    settings_(given(case=cases())(keep))()
    return found


def test_the_simplest_case_is_a_nav_sum_by_frame():
    assert repr(generated(1)[0]) == (
        "Case(programs=(Program(buffers=(Buffer(name='a'),)),), shape=(1, 1), sig_dims=1, "
        "chunks=((1,), (1,)))"
    )


@pytest.mark.parametrize("kind", RESULTS, indirect=True)
@pytest.mark.parametrize("method", METHOD_KINDS)
@pytest.mark.parametrize("merge", MERGE_KINDS)
def test_every_way_to_merge_with_every_method(merge, method, client, kind):
    """A fixed program each, so that none is left to chance."""
    plain = (
        Buffer("a", op="max", of="where", extra=(2, 3), fill=-1),
        Buffer("keys", dtype="float32", fill=0.5),
    )
    whole = (
        Buffer("get", "sig", "hash", extra=(2,)),
        Buffer("data", "single", "min", dtype="int16"),
        *((Buffer("stamp", op="stamp"),) if merge in ("merge", "assigns") else ()),
        *((Buffer("scan", op="scan"),) if merge == "merge" else ()),
        *((Buffer("running", "single", use="private"),) if merge == "merge" else ()),
        *((Buffer("median", "single", "median", dtype="float64"),) if merge == "once" else ()),
    )
    program = Program(
        buffers=plain if merge == "default" else plain + whole,
        method=method,
        merge=merge,
        postprocess=True,
        split_every=2,
    )
    shape, chunks = (7, 3, 2, 4), ((1, 2, 3, 1), (3,), (1, 1), (3, 1))
    roi = np.arange(21).reshape(7, 3) % 4 > 0
    check(Case((program,), shape, 2, chunks, dtype="int16", roi=roi, tile_bytes=24), client, kind)


@pytest.mark.full
def test_the_strategies_leave_nothing_out():
    seen = set()
    for case in generated(300):
        seen.add(("chunked", *(len(sizes) > 1 for sizes in case.chunks[: len(case.nav)])))
        for p in case.programs:
            seen.update({p.method, p.merge})
            seen.update(name for name in ATTRIBUTES if getattr(p, name))
            seen.update((b.kind, b.op) for b in p.buffers)
            seen.update(b.of for b in p.buffers)
            seen.update(o.form for o in p.outputs)
    plain = set(itertools.product(["nav", "sig", "single"], ["sum", "min", "max", "xor"]))
    ordered = set(itertools.product(["sig", "single"], ["last", "hash"]))
    own = {("nav", "scan"), ("nav", "stamp"), ("single", "median")}
    grids = {("chunked", True), ("chunked", True, True), ("chunked", False, True)}
    names = {*METHOD_KINDS, *MERGE_KINDS, *ATTRIBUTES, *CONTRIBUTIONS, *OWN_FORMS, *SAME_FORMS}
    assert plain | ordered | own | grids | names <= seen
