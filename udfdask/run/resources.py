"""What the workers of a cluster must have to run UDFs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from udfdask.backends.table import known_backends
from udfdask.plan.check_input import check_udfs
from udfdask.plan.declarations import allowed_backends
from udfdask.plan.parameters import new_instance
from udfdask.run.run_udf import as_list
from udfdask.udf import UDF


def get_resources(
    udfs: UDF | Sequence[UDF] | Mapping[str, UDF], backends: str | Sequence[str] | None = None
) -> dict[str, float]:
    """Return the resources that the workers of a cluster must have to run UDFs together.

    Pass them to `dask.compute` or a method of a client. `udfdask.compute`, `Result.compute` and
    `run_udf_iter` do not need them: they restrict only the tasks that need a device.

    Parameters
    ----------
    udfs : UDF, or list, tuple or dict of UDF
        The UDFs to run.
    backends : str or sequence of str, optional
        The array backends that the run is restricted to, as in `run_udf`.

    Returns
    -------
    dict
        ``{"CUDA": 1}`` if one of the UDFs runs only on a CUDA device: all backends that it accepts
        are CuPy backends or "cuda". ``{}`` otherwise.

    Raises
    ------
    ArgumentTypeError
        If `udfs` contains something else than UDFs, or `backends` has a wrong type.
    ArgumentValueError
        If `udfs` is empty, a backend is unknown, or a UDF accepts none of `backends`.

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
    needs_cuda = any(all(backend.device == "cuda" for backend in offer) for offer in offers)
    return {"CUDA": 1} if needs_cuda else {}
