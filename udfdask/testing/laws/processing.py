"""Laws about processing: a chunk only changes its own buffers, and repeated runs agree."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from typing import Any

import numpy as np

from udfdask.testing.differences import same
from udfdask.testing.eager_run import Layout
from udfdask.testing.failures import UDFCheckError, in_words, is_read_only
from udfdask.testing.mutable_state import freeze, restore, take_snapshot
from udfdask.testing.reference import run_checked
from udfdask.testing.udf_under_test import Subject, as_rows, varied


def runs(subject: Subject) -> None:
    """The UDF works with the whole data as one chunk and one tile, without dask."""
    error = subject.error_with(subject.data)
    if error is not None:
        raise UDFCheckError(
            f"the plainest run fails, with one chunk of dtype {subject.data.dtype} and shape "
            f"{subject.data.shape}: {in_words(error, subject.udf)}. If the UDF needs other data, "
            "pass a small array of such data"
        ) from error


def leaves_its_input_alone(subject: Subject) -> None:
    """The UDF does not write into frames, tiles or partitions."""
    data = subject.data.copy()
    try:
        subject.run(data=data)
    except UDFCheckError as error:
        if isinstance(error.__cause__, Exception) and is_read_only(error.__cause__):
            raise UDFCheckError(in_words(error.__cause__, subject.udf)) from error.__cause__
        raise
    if not same(data, subject.data):
        method = subject.udf.get_method().value
        subject.fail(
            f"process_{method} writes into its input: copy it or set writable_input = True (the "
            "data are not the same after a run)"
        )


def keeps_no_state(subject: Subject) -> None:
    """Only buffers keep data of a chunk: not the class, a global variable, or a parameter."""
    cls = type(subject.udf)
    layout = Layout(nav_chunks=subject.two_chunks)
    parameters = {k: freeze(v) for k, v in subject.udf._kwargs.items()}
    _run_all(subject, layout)
    between = take_snapshot(cls)
    _run_all(subject, layout)
    changed = between.changes(take_snapshot(cls))
    rule = (
        "chunks are processed in any order, at the same time and in other processes, so these "
        "data are lost or mixed up. Keep them in a buffer"
    )
    if changed:
        subject.fail(f"{changed[0]} changes while data are processed: {rule}")
    for name, value in subject.udf._kwargs.items():
        if freeze(value) != parameters[name]:
            subject.fail(f"parameter {name!r} changes while data are processed: {rule}")
    _check_first_run_left_nothing(subject, rule)


def _run_all(subject: Subject, layout: Layout) -> None:
    """Run with some chunks and merge them; ignore errors of the merge, other laws check it."""
    run = subject.run(layout)
    with contextlib.suppress(UDFCheckError):
        subject.results_of(run)


def _check_first_run_left_nothing(subject: Subject, rule: str) -> None:
    """Fail if data that the first run has kept, such as a cache, change runs of other data."""
    cls, before = type(subject.udf), subject.before
    changed = before.changes(take_snapshot(cls))
    other = np.ascontiguousarray(subject.data[::-1]) if subject.nav else subject.data
    if not changed or subject.error_with(other):
        return
    after_first_run = subject.results(data=other)
    restore(cls, before, changed)
    difference = subject.difference(after_first_run, subject.results(data=other))
    if difference:
        subject.fail(
            f"{changed[0]} is set by the first data that are processed and changes the results of "
            f"other data: {difference.name!r} is {difference.one} instead of {difference.other} "
            f"{difference.where}; {rule}, or in what get_task_data returns"
        )


def repeats_itself(subject: Subject) -> None:
    """A second run over the same data gives the same results."""
    one = subject.results()
    other = subject.results()
    difference = subject.difference(other, one)
    if difference:
        subject.fail(
            f"two runs over the same data differ: {difference.name!r} is {difference.other}, then "
            f"{difference.one} {difference.where}. Random numbers need a seed made from "
            "parameters and meta.coordinates"
        )


def get_results_repeats_itself(subject: Subject) -> None:
    """`get_results` has no side effects: a second call gives the same."""
    cls = type(subject.udf)
    seen: list[dict[str, Any]] = []
    own = inspect.getattr_static(cls, "get_results")  # may be a property that returns a method

    def get_results(udf: Any) -> Any:
        for _ in range(2):
            returned = own.__get__(udf)()
            arrays = {**udf.results._udfdask_arrays, **dict(returned.items())}
            seen.append(copy.deepcopy(arrays))
        return returned

    run = subject.run(udf=varied(subject.udf, get_results=get_results))
    subject.results_of(run)
    first, again = seen[-2:]
    for name in first:
        one, other = first[name], again.get(name)
        if not _close(subject, one, other):
            subject.fail(
                f"get_results() gives something else for {name!r} when it is called again. It must "
                "not change buffers, the class or a random state: return new arrays"
            )


def _close(subject: Subject, one: Any, other: Any) -> bool:
    """Return whether two results agree, with or without masks."""
    if isinstance(one, tuple) and isinstance(other, tuple):  # from with_mask
        return all(_close(subject, a, b) for a, b in zip(one, other, strict=True))
    try:
        a, b = np.asarray(one), np.asarray(other)
    except ValueError:  # nested lists of objects
        return same(one, other)
    return subject.difference({"x": a}, {"x": b}) is None


def gives_what_a_plain_loop_gives(subject: Subject) -> None:
    """In one chunk, the results are the same as in a plain loop over all frames."""
    run = subject.run()
    kinds = {name: spec.kind for name, spec in run.declared.outputs.items()}
    expected = as_rows(subject.reference(subject.data), kinds, None, len(subject.nav))
    results = subject.results_of(run)
    difference = subject.difference({k: results[k] for k in kinds}, expected)
    if difference:
        subject.fail(
            f"one chunk gives {difference.name!r} = {difference.one}, a plain loop over all frames "
            f"{difference.other} {difference.where}"
        )


def buffers_hold_what_they_are_given(subject: Subject) -> None:
    """Buffers keep the assigned values: none wraps around or is cut off by the dtype."""
    usable = [data for data in subject.arrays if subject.error_with(data) is None]
    with warnings.catch_warnings():
        # NumPy only warns about scalars; arrays wrap around without a warning
        warnings.filterwarnings("error", "overflow encountered in scalar", RuntimeWarning)
        for data in usable:
            try:
                run_checked(subject.udf, data, subject.sig_dims)
            except RuntimeWarning as error:
                subject.fail(
                    f"with data of dtype {data.dtype}: {error}. A single number of a buffer has "
                    "its dtype: declare a wider one, or add to the whole buffer: "
                    "self.results.x += value"
                )
            except UDFCheckError as error:
                subject.fail(f"with data of dtype {data.dtype}: {error}")
