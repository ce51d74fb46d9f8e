"""Result buffers: declarations of a UDF, arrays for them, and the views that a UDF sees."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from operator import index
from typing import Any, cast

import numpy as np

from udfdask.backends.backend import NUMPY, Backend, DenseBackend
from udfdask.base.types import AnyArray, Kind, Use, Where
from udfdask.errors import ArgumentValueError, UDFError
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.udf.params import Values

KINDS = ("nav", "sig", "single")


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSpec:
    """The declaration of a result buffer, which `UDF.buffer` returns.

    Examples
    --------
    >>> import udfdask as ud
    >>> spec = ud.UDF().buffer(kind="nav", extra_shape=(2,), dtype="int64")
    >>> spec.kind, spec.extra_shape, spec.dtype, spec.fill
    ('nav', (2,), dtype('int64'), np.int64(0))
    """

    kind: Kind
    """Shaped like the scan (`nav`), like a frame (`sig`), or neither (`single`)."""
    extra_shape: tuple[int, ...]
    """Axes after the axes of the kind."""
    dtype: np.dtype[Any]
    """Dtype of the buffer and of the result."""
    where: Where | None = None
    """`device` keeps the buffer on the device until a chunk is done."""
    use: Use | None = None
    """`private`: not a result; `result_only`: filled by `get_results` only."""
    fill_value: Any = None
    """Value outside the ROI; None for the default of the dtype."""

    def shape(self, n_rows: int, sig: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the buffer.

        Parameters
        ----------
        n_rows : int
            Number of frames.
        sig : tuple of int
            Shape of a frame.

        Returns
        -------
        tuple of int
            (n_rows, *extra_shape) or (*sig, *extra_shape); `extra_shape` or (1,) for single.
        """
        if self.kind == "nav":
            return (n_rows, *self.extra_shape)
        if self.kind == "sig":
            return (*sig, *self.extra_shape)
        return self.extra_shape or (1,)

    def backend(self, given: Backend) -> DenseBackend:
        """Return the backend of the buffer; `given` is the backend of the UDF's data."""
        on_device = self.where == "device" and given.on_device and given.dense.holds(self.dtype)
        return given.dense if on_device else NUMPY

    def allocate(self, n_rows: int, sig: tuple[int, ...], given: Backend = NUMPY) -> AnyArray:
        """Return a new array of zeros; `given` is the backend of the UDF's data."""
        xp = self.backend(given).namespace()
        array: AnyArray = xp.zeros(self.shape(n_rows, sig), dtype=self.dtype)
        return array

    def nbytes(self, n_rows: int, sig: tuple[int, ...]) -> int:
        """Return the size in bytes for a number of rows and the shape of a frame."""
        return math.prod(self.shape(n_rows, sig)) * self.dtype.itemsize

    @property
    def fill(self) -> Any:
        """Value of `res[name]` outside the ROI."""
        if self.fill_value is not None:
            return self.fill_value
        kind = self.dtype.kind
        if kind in "fc":
            return np.nan if kind == "f" else complex(np.nan, np.nan)
        if kind in "mM":
            return np.array("NaT", dtype=self.dtype)
        return None if kind == "O" else np.zeros((), dtype=self.dtype)[()]


def declare(
    kind: Any, extra_shape: Any, dtype: Any, where: Any, use: Any, fill_value: Any
) -> BufferSpec:
    """Declare a buffer; raise if an argument is invalid."""
    uses = (None, "private", "result_only")
    for name, value, known in (("use", use, uses), ("where", where, (None, "device"))):
        if value not in known:
            raise ArgumentValueError(
                f"buffer {name} must be one of {', '.join(map(repr, known))}, not {value!r}"
            )
    dt: np.dtype[Any] = np.dtype(dtype)
    if fill_value is not None:
        fits = np.empty((), dt)
        try:
            fits[...] = fill_value
            is_kept = dt.kind not in "biuSU" or fits[()] == fill_value  # 1.5 becomes 1
        except (TypeError, ValueError, OverflowError):
            is_kept = False
        if not is_kept:
            raise ArgumentValueError(
                f"fill_value {fill_value!r} does not fit a buffer of dtype {dt}"
            )
    kind, extra = check_kind(kind, "buffer"), check_extra_shape(extra_shape)
    options = {"where": where, "use": use, "fill_value": fill_value}
    return BufferSpec(kind=kind, extra_shape=extra, dtype=dt, **options)


def check_kind(kind: Any, owner: str) -> Kind:
    """Return the kind of a buffer or of aux data; raise if there is no such kind."""
    if kind not in KINDS:
        raise ArgumentValueError(
            f"{owner} kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}"
        )
    return cast(Kind, kind)


def check_extra_shape(extra_shape: Any) -> tuple[int, ...]:
    """Return an extra shape as a tuple; raise unless it is an int or a tuple of ints."""
    try:
        extra = tuple(index(n) for n in np.atleast_1d(np.asarray(extra_shape, dtype=object)))
    except (TypeError, ValueError):
        extra = (-1,)
    if any(n < 0 for n in extra):
        raise ArgumentValueError(
            f"extra_shape must be a tuple of non-negative ints, not {extra_shape!r}"
        )
    return extra


class FullBuffer:
    """A full buffer with its declaration, from `results.get_buffer(name)`.

    Examples
    --------
    >>> import udfdask as ud
    >>> class RankUDF(ud.UDF):
    ...     def get_results(self):
    ...         image = self.results.get_buffer("value").data  # in the shape of the scan
    ...         return {"rank": image.ravel().argsort().argsort()}
    """

    __slots__ = ("grid", "raw_data", "spec")

    def __init__(self, spec: BufferSpec, array: AnyArray, grid: Grid | None) -> None:
        self.spec = spec
        self.raw_data = array
        """The full array, as it is allocated; a nav buffer has a row for each frame."""
        self.grid = grid

    @property
    def data(self) -> AnyArray:
        """The full array; a nav buffer has all current rows, in `get_results` in nav shape."""
        if self.grid is None or self.kind != "nav":
            return self.raw_data
        shape = (*self.grid.shape, *self.extra_shape)
        if self.grid.roi is None:
            return self.raw_data.reshape(shape)
        full = np.full(shape, self.spec.fill, dtype=self.dtype)
        full[self.grid.roi] = self.raw_data
        return full

    @property
    def roi(self) -> BoolArray | None:
        """Mask of the frames that have a row, shape `nav`, in `get_results`; None for all."""
        return None if self.grid is None else self.grid.roi

    @property
    def kind(self) -> Kind:
        """Kind of the buffer."""
        return self.spec.kind

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the buffer."""
        return self.spec.dtype

    @property
    def use(self) -> Use | None:
        """Whether the buffer is a result, `private` or `result_only`."""
        return self.spec.use

    @property
    def extra_shape(self) -> tuple[int, ...]:
        """Extra axes of the buffer."""
        return self.spec.extra_shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the full array."""
        return tuple(self.raw_data.shape)


class Views(Values):
    """Show each buffer as an attribute; assignment writes in place.

    Examples
    --------
    >>> import udfdask as ud
    >>> class TotalUDF(ud.UDF):
    ...     def merge(self, dest, src):
    ...         dest.total += src.total
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise UDFError(self._no_buffer(name, " to assign to"))
        view = self.__dict__[name]
        if view is None:
            raise UDFError(f"buffer {name!r} is result_only: return it from get_results")
        if value is not view:  # `x += v` has changed the view and assigns it again
            view[...] = value

    def __getattr__(self, name: str) -> Any:
        # hasattr and pickle rely on an AttributeError
        raise AttributeError(self._no_buffer(name))

    def __getitem__(self, name: str) -> Any:
        self._deprecate_items(name)
        return self.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._deprecate_items(name)
        setattr(self, name, value)

    def _no_buffer(self, name: str, use: str = "") -> str:
        return f"there is no buffer {name!r}{use}; declared buffers: {sorted(self.__dict__)}"

    def _deprecate_items(self, name: str) -> None:
        text = f"results[{name!r}] is deprecated, use results.{name}"
        warnings.warn(text, DeprecationWarning, stacklevel=3)


class PartialViews(Views):
    """Show partial results to `merge_all`, by attribute or by item.

    Examples
    --------
    >>> import udfdask as ud
    >>> class TotalUDF(ud.UDF):
    ...     def merge_all(self, ordered_results):
    ...         return {"total": sum(part.total for part in ordered_results.values())}
    """

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]


class Results(Views):
    """Show the buffers of a running UDF, as `self.results`.

    Examples
    --------
    >>> import udfdask as ud
    >>> class MeanUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"mean": self.buffer(kind="nav")}
    ...     def process_frame(self, frame):
    ...         self.results.mean[:] = frame.mean()
    """

    # Slots are not stored in the __dict__ of the instance, which is for the names that users
    # declare. A slot hides a buffer with the same name, so these names are unlikely ones.
    __slots__ = ("_udfdask_arrays", "_udfdask_grid", "_udfdask_specs")
    _udfdask_grid: Grid | None
    _udfdask_arrays: dict[str, AnyArray]
    _udfdask_specs: dict[str, BufferSpec]

    def __init__(
        self,
        views: dict[str, Any],
        specs: dict[str, BufferSpec],
        arrays: dict[str, AnyArray],
        grid: Grid | None = None,
    ) -> None:
        super().__init__(views)
        # given if there is a row for each frame of the run, in navigation order
        object.__setattr__(self, "_udfdask_grid", grid)
        object.__setattr__(self, "_udfdask_specs", specs)
        object.__setattr__(self, "_udfdask_arrays", arrays)

    def get_buffer(self, name: str) -> FullBuffer:
        """Return a full buffer with its declaration.

        Parameters
        ----------
        name : str
            Name of the buffer.

        Returns
        -------
        FullBuffer
            The buffer.

        Raises
        ------
        UDFError
            If there is no buffer of this name.
        """
        arrays = self._udfdask_arrays
        if name not in arrays:
            raise UDFError(f"there is no buffer {name!r}; allocated buffers: {sorted(arrays)}")
        return FullBuffer(self._udfdask_specs[name], arrays[name], self._udfdask_grid)
