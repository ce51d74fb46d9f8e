"""What UDFs need of a worker, in the words of dask's schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from udfdask.plan.check_input import check_udfs
from udfdask.plan.declarations import allowed_backends, known_backends, new_instance
from udfdask.run.run_udf import as_list
from udfdask.udf import UDF


def get_resources(udfs: UDF | Sequence[UDF], backends: Any = None) -> dict[str, float]:
    """Return the resources that a cluster's workers must have to run UDFs together.

    For `dask.compute`, `dask.persist` and a client's own methods, where they hold for all tasks of
    the computation. `udfdask.compute`, `udfdask.persist`, `Result.compute` and `run_udf_iter` need
    no such help: they restrict just the tasks that need a device.

    Parameters
    ----------
    udfs : UDF, or list or tuple of UDF
        What is to run.
    backends : str or sequence of str, optional
        The array backends that the run is restricted to, as in `run_udf`.

    Returns
    -------
    dict
        ``{"CUDA": 1}`` if any of the UDFs runs on a CUDA device alone: all backends that it may be
        given are those of CuPy, or "cuda". ``{}`` if none does.

    Raises
    ------
    ArgumentTypeError
        If these are no UDFs, or `backends` is of another type.
    ArgumentValueError
        If there is no UDF, a backend is unknown, or a UDF has none in common with `backends`.

    Examples
    --------
    >>> import udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> class OnDevice(ud.UDF):
    ...     def get_backends(self):
    ...         return (ud.UDF.BACKEND_CUPY,)
    >>> ud.get_resources([SumUDF(), OnDevice()])
    {'CUDA': 1}
    >>> ud.get_resources(SumUDF())
    {}
    """
    every = as_list(udfs)
    check_udfs(every)
    allowed = None if backends is None else known_backends(backends, f"backends={backends!r}")
    offers = [allowed_backends(new_instance(type(udf), udf._kwargs), allowed) for udf in every]
    needy = any(all(backend.device == "cuda" for backend in offer) for offer in offers)
    return {"CUDA": 1} if needy else {}
