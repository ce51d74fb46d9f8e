"""Choose the folder in which computations keep their partial results."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import dask.config

from udfdask.config import cache_limit


def cache(
    folder: str | os.PathLike[str] | None, limit: int | str = "20 GB"
) -> AbstractContextManager[Any]:
    """Keep partial results of all runs in a folder, and read those that are there.

    From this call on, each computation by udfdask computes only chunks and UDFs whose partial
    results are not in the folder. In a ``with`` statement, this ends with its block.

    Parameters
    ----------
    folder : str or path-like, or None
        Folder of the cache: new, empty, or a cache already. All workers must be able to write to
        it. Several processes can use it at the same time. None for no cache.
    limit : int or str
        Largest size of the folder, in bytes or as a text such as ``"500 MB"``. Partial results
        that have not been used for the longest time are removed first.

    Returns
    -------
    context manager
        It restores the setting before this call.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `folder` cannot be a cache, or `limit` is not a positive size.
    FileNotFoundError
        If the parent folder does not exist.

    See Also
    --------
    compute : Its argument `cache` is the folder of one computation.
    Result.to_zarr : With `resume=True`, partial results are kept until the store is complete.

    Notes
    -----
    The cache is used by `compute`, by `Result.compute` and `Result.to_zarr`, by accessors, and by
    the command line with ``--cache``. It is not used by `dask.compute`, by `persist` and by
    `run_udf_iter`.

    A partial result belongs to the data (path, size and modification time of their files), the
    code and parameters of the UDF, the frames of the chunk in the region of interest, and the
    versions of packages. If one of these has no name that is the same in every process, the run is
    computed without the cache, with a warning.

    Examples
    --------
    >>> import tempfile, dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF, SumUDF
    >>> x = da.ones((4, 6, 8, 8), chunks=(1, 6, 8, 8))
    >>> with tempfile.TemporaryDirectory() as folder, ud.cache(folder, limit="1 GB"):
    ...     first = ud.run_udf(x, SumUDF(), roi=(slice(0, 2),)).compute()
    ...     second = ud.run_udf(x, SumUDF()).compute()  # loads the other two chunks
    >>> second["intensity"].max()
    np.float64(24.0)
    """
    path = None
    if folder is not None:
        from udfdask.records.folder import check_folder  # most programs have no cache

        path = str(check_folder(folder))
    setting = dask.config.set({"udfdask.cache-folder": path, "udfdask.cache-limit": limit})
    try:
        cache_limit()
    except BaseException:
        setting.__exit__(None, None, None)
        raise
    return setting
