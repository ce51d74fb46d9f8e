"""Promises that are not true are found out, one law for each; true ones raise no alarm."""

import dataclasses

import pytest

import lying_udfs
import udfdask as ud
from udfdask.testing import UDFCheckError, check_udf
from udfdask.testing.laws import promises

FIELDS = [field.name for field in dataclasses.fields(ud.Promises)]
for name in ("starts_no_threads", "streams_tiles"):  # no result depends on them
    FIELDS.remove(name)
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
    report = check_udf(lying_udfs.Peak(), skip=["processes_stacks"])
    assert report.skipped == ("processes_stacks",)
    assert "processes_stacks" not in report.laws


def test_promises_of_another_type():
    class Wrong(lying_udfs.Rows):
        promises = {"streams_tiles": True}

    with pytest.raises(ud.ArgumentTypeError, match=r"of udfdask\.Promises, not \{.streams_tiles"):
        check_udf(Wrong())
