"""Laws about making a UDF: every task makes a new one from the parameters, in any process."""

from __future__ import annotations

import cloudpickle
from dask.base import is_dask_collection

from udfdask.plan.lost_attributes import find_lost_attribute
from udfdask.testing.equality import same, show
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.udf_under_test import Subject

RULE = (
    "each chunk makes a new UDF like this, so __init__ must accept the arguments that it passes to "
    "super().__init__, unchanged"
)


def makes_itself_again(subject: Subject) -> None:
    """`__init__` accepts the parameters that it passes to `super().__init__`, unchanged."""
    udf = subject.original
    cls, kwargs = type(udf), udf._kwargs
    try:
        again = cls(**kwargs)
    except Exception as error:  # the user's __init__ can raise anything
        arguments = ", ".join(f"{k}=..." for k in kwargs)
        raise UDFCheckError(
            f"__init__ does not accept its own parameters: {cls.__name__}({arguments}) raises "
            f"{type(error).__name__}: {error}; {RULE}"
        ) from error
    for name in {**kwargs, **again._kwargs}:
        one, other = kwargs.get(name), again._kwargs.get(name)
        if not is_dask_collection(one) and not same(one, other):
            raise UDFCheckError(
                f"__init__ changes its own parameter {name!r} each time: made again, it is "
                f"{show(other)} instead of {show(one)}; {RULE}"
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
