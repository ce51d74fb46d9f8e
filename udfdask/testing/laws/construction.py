"""Laws about making a UDF: every task makes a new one from the parameters, in any process."""

from __future__ import annotations

import functools
from typing import Any

import cloudpickle
from dask.base import is_dask_collection

from udfdask.plan.lost_attributes import find_lost_attribute
from udfdask.plan.recipe import UDFRecipe
from udfdask.testing.differences import same, show
from udfdask.testing.eager_run import ONE_CHUNK, declare
from udfdask.testing.udf_under_test import Subject

REPEATS = 12
"""Number of calls of the declaring methods; a random choice of two is then missed in 1 of 4096."""


def makes_itself_again(subject: Subject) -> None:
    """`__init__` accepts the parameters that it passes to `super().__init__`, unchanged."""
    udf = subject.original
    cls, kwargs = type(udf), udf._kwargs
    rule = (
        "each chunk makes a new UDF like this, so __init__ must accept the arguments that it "
        "passes to super().__init__"
    )
    try:
        again = cls(**kwargs)
    except Exception as error:  # noqa: BLE001  # the user's __init__ can raise anything
        arguments = ", ".join(f"{k}=..." for k in kwargs)
        subject.fail(
            f"__init__ does not accept its own parameters: {cls.__name__}({arguments}) raises "
            f"{type(error).__name__}: {error}; {rule}"
        )
    for name in dict.fromkeys((*kwargs, *again._kwargs)):
        if name not in kwargs or name not in again._kwargs:
            subject.fail(
                f"__init__ does not accept its own parameters: made again, the UDF has the "
                f"parameters {sorted(again._kwargs)} instead of {sorted(kwargs)}; {rule}"
            )
        if not is_dask_collection(kwargs[name]) and not same(kwargs[name], again._kwargs[name]):
            subject.fail(
                f"__init__ changes its own parameter {name!r} each time: made again, it is "
                f"{show(again._kwargs[name])} instead of {show(kwargs[name])}; {rule} unchanged"
            )
    if lost_attribute := find_lost_attribute(udf):
        subject.fail(lost_attribute)
    lost = [k for k in vars(udf) if k not in vars(again) and not is_cached(cls, k)]
    if lost:
        subject.fail(
            f"attributes set from outside do not reach the tasks: {', '.join(lost)}. Pass them as "
            "parameters to super().__init__, or set them in __init__"
        )


def is_cached(cls: type, name: str) -> bool:
    """Return whether an attribute is the value of a cached property."""
    return isinstance(getattr(cls, name, None), functools.cached_property)


def can_be_pickled(subject: Subject) -> None:
    """The class and the parameters can be pickled."""
    udf = subject.udf
    for name, value in udf._kwargs.items():
        error = _pickling_error(value)
        if error:
            subject.fail(
                f"parameter {name!r} cannot be pickled ({error}): parameters are sent to other "
                "processes. Pass the values that it is made from, and make it in get_task_data"
            )
    error = _pickling_error((type(udf), udf._kwargs))
    if error:
        subject.fail(
            f"the class cannot be pickled ({error}): its methods refer to an object that cannot "
            "be sent to other processes. Make this object in get_task_data"
        )


def _pickling_error(value: Any) -> str:
    """Return the error of pickling a value as text; "" if pickling works."""
    try:
        cloudpickle.loads(cloudpickle.dumps(value))
    except Exception as error:  # noqa: BLE001  # pickling a user's object can raise anything
        return f"{type(error).__name__}: {error}"
    return ""


def declares_the_same(subject: Subject) -> None:
    """Repeated calls of the declaring methods return the same."""

    def declared() -> UDFRecipe:
        udf = type(subject.udf)(**subject.udf._kwargs)
        return declare([udf], subject.data, subject.sig_dims, ONE_CHUNK).udfs[0]

    first = subject.attempt("when the run is planned", declared)
    for _ in range(REPEATS):
        again = declared()
        for name in dict.fromkeys((*first.buffers, *again.buffers)):
            one, other = first.buffers.get(name), again.buffers.get(name)
            if one != other:
                subject.fail(
                    f"get_result_buffers() declares buffer {name!r} differently in each call: "
                    f"{_spec(one)}, then {_spec(other)}. It may depend only on parameters and on "
                    "the shape, dtype and ROI of the dataset"
                )
        if (first.method, first.input_dtype) != (again.method, again.input_dtype):
            subject.fail("get_method() or get_preferred_input_dtype() returns different values")


def _spec(spec: Any) -> str:
    """Return a declaration as text."""
    if spec is None:
        return "not at all"
    return f"kind {spec.kind}, extra_shape {spec.extra_shape}, dtype {spec.dtype}"
