"""Laws about processing: a chunk only changes its own buffers, and repeated runs agree."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from typing import Any

import numpy as np

from udfdask.names.naming import identity_of
from udfdask.testing.eager_run import ONE_CHUNK, Layout
from udfdask.testing.equality import same
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.mutable_state import changes, restore, take_snapshot
from udfdask.testing.reference import run_checked
from udfdask.testing.udf_under_test import Subject, in_words, varied


def runs(subject: Subject) -> None:
    """The UDF works with the whole data as one chunk and one tile, without dask."""
    error = subject.error_with(subject.data)
    if error is not None:
        raise UDFCheckError(
            f"the plainest run fails, with one chunk of dtype {subject.data.dtype} and shape "
            f"{subject.data.shape}: {in_words(error)}. If the UDF needs other data, "
            "pass a small array of such data"
        ) from error


def leaves_its_input_alone(subject: Subject) -> None:
    """The UDF does not write into frames, tiles or partitions."""
    remedy = "copy what it writes into, or set writable_input = True"
    data = subject.data.copy()
    try:
        subject.run(data=data)
    except UDFCheckError as error:
        raise UDFCheckError(f"{error}. If it writes into its input: {remedy}") from error.__cause__
    if not same(data, subject.data):
        raise UDFCheckError(f"the data are not the same after a run: {remedy}")


def keeps_no_state(subject: Subject) -> None:
    """Only buffers keep data of a chunk: not the class, a global variable, or a parameter."""
    rule = (
        "chunks are processed in any order, at the same time and in other processes, so these "
        "data are lost or mixed up. Keep them in a buffer, or in what get_task_data returns"
    )
    kwargs = subject.udf._kwargs
    parameters = {k: identity_of(v) for k, v in kwargs.items()}
    snapshots = [subject.before]
    for _ in range(2):
        with contextlib.suppress(UDFCheckError):  # other laws are about errors of its merge
            subject.results(Layout(nav_chunks=subject.two_chunks))
        snapshots.append(take_snapshot(type(subject.udf)))
    before, between, after = snapshots
    changed = changes(between, after)
    changed += [f"parameter {k!r}" for k, v in kwargs.items() if identity_of(v) != parameters[k]]
    if changed:
        raise UDFCheckError(f"{changed[0]} changes while data are processed: {rule}")
    # what the first run has kept, such as a cache, must not change runs of other data
    kept = changes(before, between)
    other = np.ascontiguousarray(subject.data[::-1]) if subject.nav else subject.data
    if not kept or subject.error_with(other):
        return
    after_first_run = subject.results(data=other)
    restore(before, kept)
    subject.agree(
        after_first_run,
        subject.results(data=other),
        f"{kept[0]} is set by the first data that are processed and changes the results of other "
        f"data: {{name!r}} is {{one}} instead of {{other}} {{where}}; {rule}",
    )


def repeats_itself(subject: Subject) -> None:
    """A second run over the same data gives the same results."""
    subject.agree(
        subject.results(),
        subject.results(),
        "two runs over the same data differ: {name!r} is {one}, then {other} {where}. Random "
        "numbers need a seed made from parameters and meta.coordinates",
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

    subject.results(udf=varied(subject.udf, get_results=get_results))
    first, again = seen[-2:]
    for name in first:
        if not same(first[name], again.get(name)):
            raise UDFCheckError(
                f"get_results() gives something else for {name!r} when it is called again. It must "
                "not change buffers, the class or a random state: return new arrays"
            )


def gives_what_a_plain_loop_gives(subject: Subject) -> None:
    """In one chunk, the results are the same as in a plain loop over all frames."""
    subject.matches(
        ONE_CHUNK,
        "one chunk gives {name!r} = {one}, a plain loop over all frames {other} {where}",
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
                raise UDFCheckError(
                    f"with data of dtype {data.dtype}: {error}. A single number of a buffer has "
                    "its dtype: declare a wider one, or add to the whole buffer: "
                    "self.results.x += value"
                ) from error
            except UDFCheckError as error:
                raise UDFCheckError(f"with data of dtype {data.dtype}: {error}") from error
