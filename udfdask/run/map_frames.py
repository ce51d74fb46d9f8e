"""Run a plain function over every frame."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, overload

import dask.array as da

from udfdask.advice import ARRAY
from udfdask.errors import ArgumentTypeError
from udfdask.geometry.roi import Region
from udfdask.results.result import Result
from udfdask.run.options import DescribedData
from udfdask.run.run_udf import run_for
from udfdask.udf import UDF
from udfdask.udf.libertem_udfs import udf_name


class MapOptions(TypedDict, total=False):
    """Options of `map_frames` of every entry point; all other keyword arguments are for `func`."""

    output_shape: tuple[int, ...] | None
    output_dtype: Any
    ragged: bool
    output_names: Sequence[str] | None
    backends: str | Sequence[str] | None


@overload
def map_frames(
    array: da.Array | DescribedData,
    func: Callable[..., Any],
    *,
    output_names: Sequence[str],
    **kwargs: Any,
) -> Result[da.Array]: ...
@overload
def map_frames(
    array: da.Array | DescribedData,
    func: Callable[..., Any],
    *,
    output_names: None = ...,
    **kwargs: Any,
) -> da.Array: ...
def map_frames(
    array: da.Array | DescribedData,
    func: Callable[..., Any],
    *,
    sig_dims: int | None = None,
    roi: Region | None = None,
    output_shape: tuple[int, ...] | None = None,
    output_dtype: Any = None,
    ragged: bool = False,
    output_names: Sequence[str] | None = None,
    backends: str | Sequence[str] | None = None,
    **kwargs: Any,
) -> da.Array | Result[da.Array]:
    """Call a function with every frame, lazily.

    Parameters
    ----------
    array : dask.array.Array or OpenedFile, shape (*nav, *sig)
        The data.
    func : callable
        Called as ``func(frame, **kwargs)`` with each frame, shape `sig`, in the dtype that UDFs get
        (float32 or float64 for integers). Returns an array or scalar, always of the same shape, or
        None where there is no result: NaN is stored. A quantity of pint loses its unit.
    sig_dims, roi
        As in `run_udf`.
    output_shape : tuple of int, optional
        Shape of the arrays that `func` returns. If `output_shape` or `output_dtype` is missing,
        `func` is called once, immediately, on a frame of ones.
    output_dtype : dtype-like, optional
        Dtype of the arrays that `func` returns.
    ragged : bool
        Whether `func` may return a different shape for each frame: the result has dtype object.
    output_names : sequence of str, optional
        Names of several results, such as ``("position", "width")``: `func` returns a tuple, list or
        array with one value for each. The values may have different shapes and dtypes; if
        `output_shape` and `output_dtype` are given, they are those of each value.
    backends : str or sequence of str, optional
        The array types in which `func` takes frames, as constants of `UDF`; by default NumPy
        arrays. With ``backends="cupy"``, frames are CuPy arrays on a CUDA device, and `func` may
        return CuPy arrays. Frames of other types are converted. Matrices have shape (1, pixels).
    **kwargs
        Parameters of `func`: constants, or `UDF.aux_data` of kind nav, where `func` gets the value
        for its frame. A parameter with the name of an option of `map_frames` goes into
        ``functools.partial(func, output_shape=...)``.

    Returns
    -------
    dask.array.Array, shape (*nav, *output_shape), or Result
        One entry per frame, in the navigation chunks of `array`; fill outside the ROI. With
        `output_names`, a `Result` with such an array for each name. In files it has the name of
        the function, such as ``fit_width`` for ``"width"`` of ``fit``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If neither `map_frames` nor `func` has a keyword argument of this name, or both have it; if
        `backends` is not the name of an array type.
    DeviceError
        If `func` takes only arrays on a device, its output has no `output_shape` or `output_dtype`,
        and this process has no device.
    UDFError
        As in `run_udf`, or if `func` does not return an array or scalar, or not one value for each
        of `output_names`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> x = da.ones((2, 3, 4, 5), chunks=(1, 3, 4, 5))
    >>> ud.map_frames(x, np.sum, axis=-1)
    dask.array<autoudf-result-nav, shape=(2, 3, 4), dtype=float64, chunksize=(1, 3, 4), ...>

    A function with two results:

    >>> def brightest_pixel(frame):
    ...     return np.unravel_index(frame.argmax(), frame.shape)
    >>> found = ud.map_frames(x, brightest_pixel, output_names=("row", "column"))
    >>> found["row"].shape, found["column"].compute().max()
    ((2, 3), np.int64(0))
    """
    given = locals()
    if name := udf_name(func):
        raise ArgumentTypeError(
            f"map_frames runs a plain function, got the UDF {name}: run_udf(array, {name}(...))"
        )
    udf = make_frame_udf(map_frames, func, given, kwargs)
    how: Any = {"sig_dims": sig_dims, "roi": roi, "caller": "map_frames"}
    result: Result[da.Array]
    (result,) = run_for(ARRAY, array, {call_of(func): udf}, **how).values()
    return result["result"] if output_names is None else result._called(name_of_map(func))


def make_frame_udf(
    caller: Callable[..., Any], func: Any, given: Mapping[str, Any], kwargs: Mapping[str, Any]
) -> UDF:
    """Return a UDF that calls a function with each frame.

    `given` are the values of the arguments of `caller` by name, and `kwargs` the parameters of
    `func`. The options of `AutoUDF` are in one of them.
    """
    from udfdask.udfs.auto import AutoUDF  # imports all built-in UDFs

    names = MapOptions.__annotations__.keys()
    given = {**given, **{name: value for name, value in kwargs.items() if name in names}}
    parameters = {name: value for name, value in kwargs.items() if name not in names}
    _check_own_names(caller, func, given)
    options = {name: given[name] for name in names if name in given}
    return AutoUDF(f=func, kwargs=parameters, **options)


def _check_own_names(caller: Callable[..., Any], func: Any, given: Mapping[str, Any]) -> None:
    """Raise if a function takes an option of its caller, too, and the user has passed it."""
    try:
        _, *others = inspect.signature(func).parameters.values()  # the first one is the frame
    except (TypeError, ValueError):  # a compiled function
        return
    bound = func.keywords if isinstance(func, functools.partial) else {}
    taken = {p.name for p in others if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for name, own in inspect.signature(caller).parameters.items():
        passed = own.default is not own.empty and given.get(name, own.default) is not own.default
        if passed and name in taken and name not in bound:
            raise ArgumentTypeError(
                f"{name}= is an option of {caller.__name__} and a parameter of "
                f"{name_of_map(func)}: for the function, bind it, "
                f"functools.partial({name_of_map(func)}, {name}=...); for {caller.__name__}, bind "
                f"the function's own value in this way, and pass {name}= too"
            )


def name_of_map(func: Any) -> str:
    """Return the name of the results of a function: its own name, "map_frames" if it has none."""
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__name__", type(func).__name__)
    return name if isinstance(name, str) and name.isidentifier() else map_frames.__name__


def call_of(func: Any) -> str:
    """Return how messages call a run of a function: "map_frames(peak)"."""
    name = name_of_map(func)
    return f"map_frames({'lambda' if name == map_frames.__name__ else name})"
