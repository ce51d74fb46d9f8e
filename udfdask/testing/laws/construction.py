"""Laws of making a UDF: every task makes its own from the parameters, in another process."""

from __future__ import annotations

import functools
from typing import Any

import cloudpickle
from dask.base import is_dask_collection

from udfdask.plan.recipe import UDFRecipe
from udfdask.testing.differences import same, show
from udfdask.testing.eager_run import ONE_CHUNK, declare
from udfdask.testing.udf_under_test import Subject

ASKED = 12
"""How often the declaring methods are asked."""


def makes_itself_again(subject: Subject) -> None:
    """`cls(**kwargs)` takes what `__init__` gave to `super().__init__`, and gives the same UDF."""
    udf = subject.original
    cls, kwargs = type(udf), udf._kwargs
    rule = (
        "every chunk works on a fresh one made like this, so __init__ must accept what it gives "
        "to super().__init__"
    )
    try:
        again = cls(**kwargs)
    except Exception as error:  # noqa: BLE001  # whatever __init__ raises
        given = ", ".join(f"{k}=..." for k in kwargs)
        subject.fail(
            f"__init__ does not accept its own parameters: {cls.__name__}({given}) raises "
            f"{type(error).__name__}: {error}; {rule}"
        )
    for name in dict.fromkeys((*kwargs, *again._kwargs)):
        if name not in kwargs or name not in again._kwargs:
            subject.fail(
                f"__init__ does not accept its own parameters: made again, the UDF has parameters "
                f"{sorted(again._kwargs)} in place of {sorted(kwargs)}; {rule}"
            )
        if not is_dask_collection(kwargs[name]) and not same(kwargs[name], again._kwargs[name]):
            subject.fail(
                f"__init__ changes its own parameter {name!r} each time: made again, it is "
                f"{show(again._kwargs[name])} in place of {show(kwargs[name])}; {rule} unchanged"
            )
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
    """The UDF can be pickled, class and parameters."""
    udf = subject.udf
    for name, value in udf._kwargs.items():
        error = _pickling_error(value)
        if error:
            subject.fail(
                f"parameter {name!r} cannot be pickled ({error}): parameters travel to other "
                "processes; pass what it is made from, and make it in get_task_data"
            )
    error = _pickling_error((type(udf), udf._kwargs))
    if error:
        subject.fail(
            f"the class cannot be pickled ({error}): something that its methods refer to cannot "
            "travel to other processes; make it in get_task_data"
        )


def _pickling_error(value: Any) -> str:
    """Return what keeps a value from travelling, in words; "" if nothing does."""
    try:
        cloudpickle.loads(cloudpickle.dumps(value))
    except Exception as error:  # noqa: BLE001  # whatever an object raises
        return f"{type(error).__name__}: {error}"
    return ""


def declares_the_same(subject: Subject) -> None:
    """Whenever and wherever it is asked, the UDF declares the same buffers."""

    def ask() -> UDFRecipe:
        udf = type(subject.udf)(**subject.udf._kwargs)
        return declare([udf], subject.data, subject.sig_dims, ONE_CHUNK).udfs[0]

    first = subject.attempt("when it is planned", ask)
    for _ in range(ASKED):
        again = ask()
        for name in dict.fromkeys((*first.buffers, *again.buffers)):
            one, other = first.buffers.get(name), again.buffers.get(name)
            if one != other:
                subject.fail(
                    f"get_result_buffers() declares buffer {name!r} differently from time to time: "
                    f"{_spec(one)}, then {_spec(other)}. It may depend on parameters and on the "
                    "data set's shape, dtype and ROI only"
                )
        if (first.method, first.input_dtype) != (again.method, again.input_dtype):
            subject.fail("get_method() or get_preferred_input_dtype() changes from time to time")


def _spec(spec: Any) -> str:
    """Return a declaration in words."""
    if spec is None:
        return "not at all"
    return f"kind {spec.kind}, extra_shape {spec.extra_shape}, dtype {spec.dtype}"
