"""Promises that are not true are found out, one law for each; true ones raise no alarm."""

import dataclasses
import itertools
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

import lying_udfs
import udfdask as ud
from udfdask.testing import UDFCheckError, check_udf
from udfdask.testing.laws import promises

FIELDS = [field.name for field in dataclasses.fields(ud.Promises)]
LIES = [(promise, cls) for promise, found in lying_udfs.LIARS.items() for cls in found]


def test_each_promise_has_a_law_and_a_liar():
    assert all(callable(getattr(promises, name)) for name in FIELDS)
    assert sorted(lying_udfs.LIARS) == sorted(FIELDS)


@pytest.mark.parametrize(("promise", "cls"), LIES, ids=[cls.__name__ for _, cls in LIES])
def test_a_promise_that_is_not_true(promise, cls):
    told = rf"^{cls.__name__}: it promises {promise}, but .*Or do not make this promise \[law"
    with pytest.raises(UDFCheckError, match=told) as caught:
        check_udf(cls())
    assert caught.value.law == promise


@pytest.mark.parametrize("cls", lying_udfs.HONEST)
def test_a_promise_that_is_true(cls):
    (promise,) = [name for name in FIELDS if getattr(cls.promises, name)]
    report = check_udf(cls())
    assert promise in report.laws
    assert not set(FIELDS) - {promise} & set(report.laws)
    assert not report.notes


def test_without_promises_there_is_nothing_to_check():
    assert not set(FIELDS) & set(check_udf(lying_udfs.Rows()).laws)


def test_a_law_of_a_promise_can_be_left_out():
    report = check_udf(lying_udfs.Selects(), skip=["streams_tiles"])
    assert report.skipped == ("streams_tiles",)
    assert "streams_tiles" not in report.laws


def test_memory_of_another_thread_is_not_that_of_the_udf(monkeypatch):
    """Another thread allocates 8 MB during one call: that is not seen again in the next run."""
    looks = itertools.count()
    look = tracemalloc.get_traced_memory

    def get_traced_memory():
        if tracemalloc.is_tracing() and next(looks) == 1:  # the first measured call has run
            with ThreadPoolExecutor(1) as pool:
                pool.submit(bytes, 1 << 23).result()
        return look()

    monkeypatch.setattr(tracemalloc, "get_traced_memory", get_traced_memory)
    assert "streams_tiles" in check_udf(lying_udfs.Streams()).laws
    assert next(looks) > 2


def test_promises_of_another_type():
    class Wrong(lying_udfs.Rows):
        promises = {"streams_tiles": True}

    with pytest.raises(ud.ArgumentTypeError, match=r"of udfdask\.Promises, not \{.streams_tiles"):
        check_udf(Wrong())


FORKED = """
import os
from udfdask.testing.working_threads import helpers_of
child = os.fork()
if child == 0:
    os._exit(helpers_of(lambda: sum(range(10**5))))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_the_main_thread_of_a_forked_process_does_not_help_itself():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
