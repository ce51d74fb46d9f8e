"""Make dask raise if it computes, to test that code is lazy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dask.config
from dask.local import get_sync


@contextlib.contextmanager
def raise_if_dask_computes(allowed: int = 0) -> Iterator[None]:
    """Raise if dask computes anything inside the `with` block.

    Parameters
    ----------
    allowed : int
        Number of computations that are allowed; they run on the synchronous scheduler.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    AssertionError
        If there are more computations.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.testing import raise_if_dask_computes
    >>> from udfdask.udfs import SumUDF
    >>> with raise_if_dask_computes():
    ...     result = ud.run_udf(da.ones((4, 4, 2, 2)), SumUDF())
    >>> with raise_if_dask_computes():
    ...     result["intensity"].sum().compute()
    Traceback (most recent call last):
    ...
    AssertionError: dask computed something, 1 time(s), where 0 are allowed
    """
    seen = 0

    def get(graph: Any, keys: Any, **kwargs: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > allowed:
            raise AssertionError(
                f"dask computed something, {seen} time(s), where {allowed} are allowed"
            )
        return get_sync(graph, keys, **kwargs)

    with dask.config.set(scheduler=get):
        yield
