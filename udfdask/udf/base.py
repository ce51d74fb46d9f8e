"""The base class of user-defined functions."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from inspect import isfunction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from udfdask.arrays.backends.convert import in_backend
from udfdask.arrays.backends.names import BackendNames
from udfdask.arrays.backends.table import backend_of
from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentTypeError, NotAvailableError
from udfdask.types import AnyArray, Kind, Use, Where
from udfdask.udf.aux_data import AuxData, make_aux
from udfdask.udf.buffers import BufferSpec, Results, Views, declare
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import Params, TaskData
from udfdask.udf.promises import Promises

if TYPE_CHECKING:
    from udfdask.writing import Target


class UDFMethod(enum.Enum):
    """Which method processes the data."""

    TILE = "tile"
    FRAME = "frame"
    PARTITION = "partition"


class MaskedResult(NamedTuple):
    """A result with its valid-data mask, from `UDF.with_mask`."""

    array: Any
    mask: Any


class UDF(BackendNames):
    """Base class of user-defined functions.

    Subclass it, declare result buffers in `get_result_buffers`, and write one of
    ``process_tile(self, tile)`` (shape (n, *part of sig)), ``process_frame(self, frame)`` (shape
    `sig`) and ``process_partition(self, partition)`` (shape (n, *sig)); the first of them in this
    order is used. Optional methods are ``preprocess``, ``postprocess``, ``get_task_data``,
    ``get_shared_task_data``, ``merge(dest, src)``, ``merge_all(ordered_results)``, ``get_results``
    and ``get_result_axes``.

    An instance describes the work and is never changed by a run: every chunk is processed by a
    fresh ``cls(**kwargs)`` made from the parameters.

    Parameters
    ----------
    **kwargs
        The parameters, available as ``self.params``. They travel to workers.

    Attributes
    ----------
    params : Params
        The parameters.
    meta : UDFMeta
        Facts about the data set and the piece being processed.
    results : Results
        Views of the result buffers that match the piece being processed.
    task_data : TaskData
        What `get_shared_task_data` and `get_task_data` returned.
    xp : module
        The array module of the current backend.
    split_every : int or False or None
        Fan-in of the merge tree; False merges in one step; None for the configured fan-in.
    merge_assigns_nav : bool
        Promise that `merge` only assigns nav buffers: allows a tree where there are some.
    elementwise_results : bool
        Promise that `get_results` works row by row over nav: it then runs chunk by chunk.
    contiguous_nav : bool
        Ask for tiles whose rows are neighbours in flattened navigation order.
    writable_input : bool
        Ask for private, writable copies of the data.
    whole_frames : bool
        Ask for tiles that hold whole frames.
    keeps_units : tuple of str
        Promise that these results are in the unit of the data: labelled results then say so.
    promises : Promises
        What else holds for its methods and makes runs cheaper. Subclasses do not inherit it.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> class MaxUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"peak": self.buffer(kind="nav", dtype=self.meta.input_dtype)}
    ...     def process_tile(self, tile):
    ...         self.results.peak[:] = np.maximum(self.results.peak, tile.max(axis=(1, 2)))
    >>> x = da.arange(2 * 3 * 4 * 4, chunks=32).reshape(2, 3, 4, 4)
    >>> ud.run_udf(x, MaxUDF(), sig_dims=2)["peak"].compute()
    array([[15., 31., 47.],
           [63., 79., 95.]])
    """

    UDF_METHOD: ClassVar[type[UDFMethod]] = UDFMethod
    USE_NATIVE_DTYPE: ClassVar[Any] = np.bool_
    TILE_DEPTH_DEFAULT: ClassVar[float] = np.inf
    TILE_DEPTH_MAX: ClassVar[float] = np.inf
    TILE_SIZE_BEST_FIT: ClassVar[float] = np.inf
    TILE_SIZE_MAX: ClassVar[float] = np.inf

    split_every: ClassVar[int | bool | None] = None
    merge_assigns_nav: ClassVar[bool] = False
    elementwise_results: ClassVar[bool] = False
    contiguous_nav: ClassVar[bool] = False
    writable_input: ClassVar[bool] = False
    whole_frames: ClassVar[bool] = False
    keeps_units: ClassVar[tuple[str, ...]] = ()

    promises: ClassVar[Promises] = Promises()

    params: Params
    meta: UDFMeta
    results: Results
    task_data: TaskData
    _kwargs: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _find_mixins_behind(cls)
        # a subclass may do what its base class promises not to do
        if "promises" not in vars(cls):
            cls.promises = UDF.promises

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self.params = Params(kwargs)

    def __getattr__(self, name: str) -> Any:
        when = _NOT_YET.get(name)
        if when is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise NotAvailableError(f"self.{name} does not exist yet: it exists {when}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remake, (type(self), self._kwargs))

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={_short(v)}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({shown})"

    @property
    def xp(self) -> Any:
        """The array module of the current backend: CuPy where the data are its arrays, or NumPy."""
        meta = self.__dict__.get("meta")
        return np if meta is None else meta._backend.dense.namespace()

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the result buffers.

        Returns
        -------
        mapping of str to BufferSpec
            Names, which are Python identifiers, and what `self.buffer(...)` returned.

        Raises
        ------
        NotImplementedError
            If the subclass does not implement it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement get_result_buffers() "
            "and return a dictionary of self.buffer(...)"
        )

    def get_preferred_input_dtype(self) -> Any:
        """Return the dtype that, combined with that of the data, gives `meta.input_dtype`.

        Returns
        -------
        dtype-like
            By default float32; `USE_NATIVE_DTYPE` leaves the dtype of the data as it is.
        """
        return np.float32

    def get_backends(self) -> Any:
        """Return the array backends that the processing method accepts, preferred first.

        Returns
        -------
        str or sequence of str
            Constants of this class such as `BACKEND_SCIPY_CSR`; by default NumPy arrays alone. With
            matrices, tiles have the shape (n, pixels) and frames (1, pixels).
        """
        return (self.BACKEND_NUMPY,)

    def get_tiling_preferences(self) -> Mapping[str, Any]:
        """Return the largest useful tile.

        Returns
        -------
        mapping
            `depth` in frames and `total_size` in bytes, positive numbers; inf, the default of both,
            for no limit.
        """
        return {"depth": self.TILE_DEPTH_DEFAULT, "total_size": self.TILE_SIZE_MAX}

    def get_method(self) -> UDFMethod:
        """Return which method processes the data.

        Returns
        -------
        UDFMethod
            The first that there is of process_tile, process_frame and process_partition.

        Raises
        ------
        ArgumentTypeError
            If there is none of them.
        """
        for method in UDFMethod:
            if hasattr(self, f"process_{method.value}"):
                return method
        raise ArgumentTypeError(
            f"{type(self).__name__} has no processing method: implement one of "
            "process_tile, process_frame or process_partition"
        )

    def get_task_data(self) -> Mapping[str, Any]:
        """Return values that a task needs and computes itself, by name.

        It runs for every chunk; `meta.slice`, `meta.coordinates` and `meta.partition_shape` are
        those of the chunk.

        Returns
        -------
        mapping of str to object
            Available as ``self.task_data``; none by default.
        """
        return {}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return expensive values that all chunks share, by name: mask stacks, FFT plans.

        It runs once per process and run, and knows nothing of a single chunk. What it returns is
        used by several threads at once and must not be changed.

        Returns
        -------
        mapping of str to object
            Available as ``self.task_data``, in `get_task_data` already; none by default.
        """
        return {}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Return what the extra dimensions of results are.

        Returns
        -------
        mapping of str to tuple of Axis
            An `Axis` for each extra dimension of a buffer. Results without an entry have
            axes called ``{buffer}_dim_0``, ``{buffer}_dim_1``, ...
        """
        return {}

    def preprocess(self) -> None:
        """Initialise the buffers, of a chunk and of a merge."""

    def postprocess(self) -> None:
        """Work on the buffers of a chunk once all its frames have been processed."""

    def cleanup(self) -> None:
        """Release what the task of a chunk holds, such as task data, after everything else."""

    def _targets(self, sources: Sequence[str]) -> Sequence[Target]:
        """Return the files that a run writes, checked; `sources` are those that it reads."""
        return ()

    def _for_run(self) -> UDF:
        """Return the UDF that a run is planned with: itself, if it keeps nothing for one run."""
        return self

    def merge(self, dest: Views, src: Views) -> None:
        """Merge partial results `src` into `dest`; the default copies nav buffers.

        Parameters
        ----------
        dest : Views
            Buffers to merge into, by attribute: shape (n, *extra_shape) for the nav rows of `src`,
            (*sig, *extra_shape), or for `single` extra_shape, (1,) if that is empty.
        src : Views
            Private copies of the partial results, in the same shapes and dtypes.

        Raises
        ------
        ArgumentTypeError
            By the default, if a dtype cannot be cast safely.
        """
        for name, values in src.items():
            target = dest.get(name)
            if not np.can_cast(values.dtype, target.dtype, casting="safe"):
                raise ArgumentTypeError(
                    f"cannot merge buffer {name!r} of dtype {values.dtype} safely into "
                    f"{target.dtype}"
                )
            target[:] = values

    def get_results(self) -> Mapping[str, Any]:
        """Return results by name, from the merged buffers; those left out are passed on.

        Returns
        -------
        mapping of str to array
            Arrays of the declared kind of dtype, or what `with_mask` returned. Nav results hold the
            frames of the ROI, shape (frames, *extra_shape), or the whole scan, shape
            (*nav, *extra_shape). Those declared `result_only` must be among them.
        """
        return {}

    def buffer(
        self,
        kind: Kind,
        extra_shape: Any = (),
        dtype: Any = "float32",
        where: Where | None = None,
        use: Use | None = None,
        fill_value: Any = None,
    ) -> BufferSpec:
        """Declare a result buffer, in `get_result_buffers`.

        Parameters
        ----------
        kind : {"nav", "sig", "single"}
            One entry per frame, per pixel, or neither.
        extra_shape : tuple of int
            Further axes behind those of the kind; entries may be 0.
        dtype : dtype-like
            Any NumPy dtype.
        where : {None, "device"}
            Make the buffer a CuPy array where the UDF is given such data, until the chunk is done;
            over CuPy chunks, in merges too. By default it is a NumPy array: see `forbuf`.
        use : {None, "private", "result_only"}
            `private` buffers are no results; `result_only` ones are filled by `get_results`.
        fill_value : scalar, optional
            What `res[name]` holds outside the ROI; by default NaN, NaT, 0, False, "" or None,
            by dtype.

        Returns
        -------
        BufferSpec
            The declaration.

        Raises
        ------
        ArgumentValueError
            If an argument is none of the above.
        ArgumentTypeError
            If `dtype` is not a dtype.

        Examples
        --------
        >>> import udfdask as ud
        >>> ud.UDF().buffer(kind="nav", extra_shape=(2,), dtype="int64").shape(5, (8, 8))
        (5, 2)
        """
        return declare(kind, extra_shape, dtype, where, use, fill_value)

    @classmethod
    def aux_data(
        cls, data: Any, kind: Kind, extra_shape: Any = (), dtype: Any = "float32"
    ) -> AuxData:
        """Return a parameter of which a UDF sees the part that belongs to the data at hand.

        In `process_frame` the parameter is an array of shape `extra_shape` (or (1,)) for kind nav,
        in `process_tile` and `process_partition` (frames, *extra_shape); for kind sig the same
        part of the signal as the data, and `extra_shape`. In `preprocess`, `postprocess`,
        `get_task_data`, `merge` and `get_results` it has all rows at hand.

        Parameters
        ----------
        data : numpy.ndarray or dask.array.Array
            The values: for kind nav of shape (*nav, *extra_shape), for sig (*sig, *extra_shape),
            for single `extra_shape`; any other layout of that size will do. Each task gets what
            belongs to its chunk; lazy values may come from another UDF over the same data.
        kind : {"nav", "sig", "single"}
            One value per frame, per pixel, or one.
        extra_shape : tuple of int
            Shape of each value.
        dtype : dtype-like
            Dtype of the data.

        Returns
        -------
        AuxData
            To be passed to a UDF as a parameter.

        Raises
        ------
        ArgumentValueError
            If `kind` or `extra_shape` cannot be; in `run_udf`, if the size does not match.
        ArgumentTypeError
            If `data` is not an array, or of another dtype than declared.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask as ud
        >>> class Scaled(ud.UDF):
        ...     def __init__(self, factor):
        ...         super().__init__(factor=factor)
        ...     def get_result_buffers(self):
        ...         return {"total": self.buffer(kind="nav")}
        ...     def process_frame(self, frame):
        ...         self.results.total[:] = self.params.factor * frame.sum()
        >>> factor = ud.UDF.aux_data(np.arange(6, dtype="float32"), kind="nav")
        >>> ud.run_udf(da.ones((2, 3, 4, 4)), Scaled(factor))["total"].compute()
        array([[ 0., 16., 32.],
               [48., 64., 80.]], dtype=float32)
        """
        return make_aux(data, kind, extra_shape, dtype)

    def with_mask(self, array: Any, mask: Any) -> MaskedResult:
        """Return a result with its valid-data mask, in `get_results`.

        Parameters
        ----------
        array : array
            The result.
        mask : bool or array of bool
            True where the result is valid; broadcasts to `array`.

        Returns
        -------
        MaskedResult
            To be returned from `get_results`.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> ud.UDF().with_mask(np.arange(3), mask=True).mask
        True
        """
        return MaskedResult(array, mask)

    def forbuf(self, array: Any, target: AnyArray) -> Any:
        """Return `array` in the array type and shape of a result buffer.

        Parameters
        ----------
        array : array
            What was computed, in the type of the current backend.
        target : array
            The view of the buffer that it will be assigned to.

        Returns
        -------
        array
            The values, in the shape of `target`: a NumPy array, or a CuPy array for a buffer on the
            device.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> ud.UDF().forbuf(np.arange(6), np.zeros((2, 3))).shape
        (2, 3)
        """
        return in_backend(array, backend_of(target)).reshape(target.shape)


def _find_mixins_behind(cls: type[UDF]) -> None:
    """Find methods of mixins that stand behind `UDF` among the bases of a class.

    The defaults of `UDF` would hide them, and they would silently never run.
    """
    behind = cls.__mro__[cls.__mro__.index(UDF) + 1 : -1]
    for name, default in vars(UDF).items() if behind else ():
        if not isfunction(default) or name.startswith("_") or name in _TOOLS:
            continue
        found = next((vars(base)[name] for base in behind if name in vars(base)), None)
        if found is not None and getattr(cls, name) is default:
            setattr(cls, name, found)


_TOOLS = frozenset({"buffer", "with_mask", "forbuf"})
"""Methods that a UDF calls, and does not write."""

_NOT_YET = {
    "meta": "while a UDF is declared, run or merged",
    "results": "while a chunk is processed, and in get_results",
    "task_data": "while a chunk is processed",
    "params": "once super().__init__(**kwargs) has been called",
    "_kwargs": "once super().__init__(**kwargs) has been called",
}


def overrides(udf: UDF, method: str) -> bool:
    """Return whether a UDF has an own version of a method: its class, a mixin, or the instance."""
    return getattr(getattr(udf, method), "__func__", None) is not getattr(UDF, method)


def _remake(cls: type[UDF], kwargs: dict[str, Any]) -> UDF:
    """Return a fresh instance with the given parameters."""
    return cls(**kwargs)


def _short(value: Any) -> str:
    """Return a repr that fits a line: arrays by shape and dtype."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        return f"<{type(value).__name__} {value.shape} {value.dtype}>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
