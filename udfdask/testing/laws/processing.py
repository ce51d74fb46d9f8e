"""Laws about one chunk: tasks make the UDF again, change only buffers, and can be repeated."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import cloudpickle
import numpy as np
from dask.base import is_dask_collection

from udfdask.base.names.naming import identity_of
from udfdask.plan.parameters import find_lost_attribute
from udfdask.testing.assertions import UDFCheckError, same, show
from udfdask.testing.eager_run import ONE_CHUNK, Layout
from udfdask.testing.mutable_state import held_outside_buffers
from udfdask.testing.reference import run_reference
from udfdask.testing.subject import Subject, in_words, varied


def makes_itself_again(subject: Subject) -> None:
    """`__init__` accepts the parameters that it passes to `super().__init__`, unchanged."""
    udf = subject.original
    cls, kwargs = type(udf), udf._kwargs
    rule = (
        "each chunk makes a new UDF like this, so __init__ must accept the arguments that it "
        "passes to super().__init__, unchanged"
    )
    try:
        again = cls(**kwargs)
    except Exception as error:  # the user's __init__ can raise anything
        arguments = ", ".join(f"{k}=..." for k in kwargs)
        raise UDFCheckError(
            f"__init__ does not accept its own parameters: {cls.__name__}({arguments}) raises "
            f"{type(error).__name__}: {error}; {rule}"
        ) from error
    for name in {**kwargs, **again._kwargs}:
        one, other = kwargs.get(name), again._kwargs.get(name)
        if not is_dask_collection(one) and not same(one, other):
            raise UDFCheckError(
                f"__init__ changes its own parameter {name!r} each time: made again, it is "
                f"{show(other)} instead of {show(one)}; {rule}"
            )
    if lost_attribute := find_lost_attribute(udf):
        raise UDFCheckError(lost_attribute)


def can_be_pickled(subject: Subject) -> None:
    """The class and the parameters can be pickled."""
    udf = subject.udf
    parts = {f"parameter {name!r}": value for name, value in udf._kwargs.items()}
    for what, value in {**parts, "the class": (type(udf), udf._kwargs)}.items():
        try:
            cloudpickle.loads(cloudpickle.dumps(value))
        except Exception as error:  # pickling a user's object can raise anything
            raise UDFCheckError(
                f"{what} cannot be pickled ({type(error).__name__}: {error}): tasks can run in "
                "other processes. Make such an object in get_task_data"
            ) from error


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
    cls, kwargs = type(subject.udf), subject.udf._kwargs
    parameters = {k: identity_of(v) for k, v in kwargs.items()}
    states = [subject.before]
    for _ in range(2):
        with contextlib.suppress(UDFCheckError):  # other laws are about errors of its merge
            subject.results(Layout(nav_chunks=subject.two_chunks))
        states.append(held_outside_buffers(cls))
    before, between, after = states
    changed = [k for k, v in after.items() if between.get(k) != v]
    changed += [f"parameter {k!r}" for k, v in kwargs.items() if identity_of(v) != parameters[k]]
    if changed:
        raise UDFCheckError(f"{changed[0]} changes while data are processed: {rule}")
    # this may be a cache, or come from the first data
    subject.notes += [
        f"{label} is set when the first data are processed: if it depends on them, {rule}"
        for label, value in between.items()
        if before.get(label) != value
    ]


def repeats_itself(subject: Subject) -> None:
    """A second run over the same data gives the same results."""
    subject.agree(
        subject.results(),
        subject.results(),
        "two runs over the same data differ: {name!r} is {one}, then {other} {where}. Random "
        "numbers need a seed made from parameters and meta.coordinates",
    )


def gives_what_a_plain_loop_gives(subject: Subject) -> None:
    """In one chunk, the results are the same as in a plain loop over all frames."""
    subject.matches(
        ONE_CHUNK,
        "one chunk gives {name!r} = {one}, a plain loop over all frames {other} {where}",
    )


def buffers_hold_what_they_are_given(subject: Subject) -> None:
    """Buffers keep the assigned values: none wraps around or is cut off by the dtype."""
    declare = type(subject.udf).get_result_buffers
    wide = varied(
        subject.udf,
        get_result_buffers=lambda self: {
            name: replace(spec, dtype=_wider(spec.dtype)) for name, spec in declare(self).items()
        },
    )
    for data in subject.usable_arrays():
        try:
            how: dict[str, Any] = {"sig_dims": subject.sig_dims, "calibration": subject.calibration}
            expected = run_reference(data, wide, **how)
        except Exception as error:  # noqa: BLE001  # such as a float as an index
            subject.notes.append(f"dtypes of buffers not checked: {in_words(error)}")
            return
        found = subject.reference(data)
        if lost := subject.difference(expected, found, data, check_dtype=False):
            raise UDFCheckError(
                f"with data of dtype {data.dtype}: {lost.name!r} of dtype {found[lost.name].dtype} "
                f"does not hold the assigned value: {lost.one} becomes {lost.other}. Declare a "
                "dtype that holds it, also for private buffers, or convert on purpose, as with "
                "np.rint(...).astype(...)"
            )


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype that holds more than integers, half precision or short strings."""
    if dtype.kind in "SU":
        return np.dtype((dtype.type, 100))
    return np.dtype("float64") if dtype.kind in "iu" or dtype == np.float16 else dtype
