"""Each run leaves one record of plain values, however it is started and however it ends."""

import json
import logging
import platform
from unittest.mock import Mock

import dask.array as da
import numpy as np
import pytest

import failing_udfs
import udfdask as ud
from udf_zoo import Rows
from udfdask.udfs import SumUDF

BROKEN = failing_udfs.Fails("process_frame", row=3)


class Kept(logging.Handler):
    """Keeps what a JSON formatter would write."""

    def __init__(self):
        super().__init__()
        self.runs = []

    def emit(self, record):
        self.runs.append(json.loads(json.dumps(record.udfdask)))


@pytest.fixture
def runs():
    """The records of the runs of a test."""
    logger, kept = logging.getLogger("udfdask.runs"), Kept()
    logger.addHandler(kept)
    logger.setLevel(logging.INFO)
    yield kept.runs
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(kept)


@pytest.fixture
def x():
    return da.ones((4, 6, 8, 8), chunks=(2, 3, 8, 8))


def computed(x, udf, **options):
    ud.compute(ud.run_udf(x, udf), **options)


def persisted(x, udf, **options):
    ud.persist(ud.run_udf(x, udf), progress=lambda state: None, **options)


def iterated(x, udf, **options):
    for _ in ud.run_udf_iter(x, udf, **options):
        pass


WAYS = {"compute": computed, "persist": persisted, "run_udf_iter": iterated}


def name_of(scheduler):
    if isinstance(scheduler, str):
        return scheduler.replace("synchronous", "sync")
    if hasattr(scheduler, "scheduler_address"):  # of Frisky
        return scheduler.scheduler_address
    return scheduler.scheduler.address


@pytest.mark.parametrize("function", WAYS)
def test_a_run_that_finishes(x, options, runs, function):
    WAYS[function](x, [SumUDF(), Rows()], **options)
    (run,) = runs
    assert run.pop("seconds") > 0
    assert run == {
        "function": function,
        "udfs": ["SumUDF", "Rows"],
        "chunks": 4,
        "frames": 24,
        "bytes": x.nbytes,
        "host": platform.node(),
        "scheduler": name_of(options["scheduler"]),
        "status": "finished",
    }


@pytest.mark.parametrize("function", WAYS)
def test_a_run_that_fails(x, options, runs, function):
    is_lazy = function == "persist" and not isinstance(options["scheduler"], str)
    if is_lazy:  # whoever reads the result gets the error
        persisted(x, BROKEN, **options)
    else:
        with pytest.raises(failing_udfs.OwnError):
            WAYS[function](x, BROKEN, **options)
    (run,) = runs
    assert run["status"] == "failed"
    assert run.get("error") == (None if is_lazy else "OwnError")


def test_persisting_without_waiting(x, client, runs):
    ud.persist(ud.run_udf(x, Rows()), scheduler=client)
    assert [run["status"] for run in runs] == ["sent"]


def test_a_client_that_is_closed(x, client, runs):
    import distributed

    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        pass
    with pytest.raises(distributed.client.ClosedClientError):
        computed(x, Rows(), scheduler=other)
    assert [(run["scheduler"], run["status"]) for run in runs] == [("closed", "failed")]


def closed(iterator):
    iterator.close()
    iterator.close()


def forgotten(iterator):
    del iterator


def interrupted(iterator):
    iterator._merge = Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        next(iterator)


@pytest.mark.parametrize("stop", [closed, forgotten, interrupted])
def test_an_iterator_that_stops_early(x, runs, stop):
    def first_and_stop():
        iterator = ud.run_udf_iter(x, Rows(), scheduler="synchronous")
        next(iterator)
        stop(iterator)

    first_and_stop()
    assert [run["status"] for run in runs] == ["cancelled"]


def test_a_run_that_starts_again(x, tmp_path, runs):
    """A damaged partial result starts the computation again; it is the same run."""
    result = ud.run_udf(x, Rows())
    result.compute(cache=tmp_path / "cache")
    for path in (tmp_path / "cache").rglob("*.record"):
        path.write_bytes(b"")
    result.compute(cache=tmp_path / "cache")
    assert [(run["status"], run["chunks"]) for run in runs] == [("finished", 4)] * 2


def test_a_region_of_interest(x, runs):
    roi = np.zeros((4, 6), bool)
    roi[0, :2] = True
    ud.run_udf(x, Rows(), roi=roi).compute()
    (run,) = runs
    assert (run["chunks"], run["frames"], run["bytes"]) == (1, 2, x.nbytes // 4)


def test_what_is_no_run(x, runs):
    ud.compute(x.sum())
    ud.run_udf(x, Rows(), roi=np.zeros((4, 6), bool)).compute()
    list(ud.run_udf_iter(x, Rows(), roi=np.zeros((4, 6), bool)))
    assert not runs


@pytest.fixture
def span(monkeypatch):
    """The span of a tracer that this process has set up."""
    trace = pytest.importorskip("opentelemetry.trace", reason="comes with LiberTEM")
    provider = Mock(spec=trace.TracerProvider)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    tracer = provider.get_tracer.return_value
    tracer.start_span.return_value = Mock(spec=trace.Span)
    yield tracer.start_span.return_value
    tracer.start_span.assert_called_once()


@pytest.mark.parametrize("function", WAYS)
def test_a_span_has_the_same_values(x, runs, span, function):
    WAYS[function](x, Rows(), scheduler="threads")
    (run,) = runs
    span.set_attributes.assert_called_once_with({f"udfdask.{k}": v for k, v in run.items()})
    span.end.assert_called_once_with()
    span.record_exception.assert_not_called()


@pytest.mark.parametrize("function", WAYS)
def test_a_span_knows_the_error(x, span, function):
    with pytest.raises(failing_udfs.OwnError) as caught:
        WAYS[function](x, BROKEN, scheduler="threads")
    span.record_exception.assert_called_once_with(caught.value)
    span.set_status.assert_called_once()
    span.end.assert_called_once_with()


def test_tasks_see_the_span(x, span):
    from opentelemetry import trace

    seen = []

    def look(block):
        seen.append(trace.get_current_span())
        return block

    ud.run_udf(x.map_blocks(look, meta=x._meta), Rows()).compute(scheduler="threads")
    assert seen == [span] * 4


def test_a_cluster_knows_whose_tasks_they_are(x, client):
    ud.run_udf(x, Rows()).compute(scheduler=client)

    def names(dask_scheduler):
        return {span.name for span in dask_scheduler.extensions["spans"].spans.values()}

    assert ("udfdask.compute",) in client.run_on_scheduler(names)
