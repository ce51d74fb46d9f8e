"""The base class of user-defined functions."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from inspect import Parameter, isfunction, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from udfdask.backends.table import BackendNames, backend_of, in_backend
from udfdask.errors import ArgumentTypeError, NotAvailableError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.types import AnyArray, Kind, Use, Where
from udfdask.udf.aux_data import AuxData, make_aux
from udfdask.udf.buffers import BufferSpec, Results, Views, declare
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import Params, TaskData
from udfdask.udf.promises import Promises

if TYPE_CHECKING:
    from udfdask.geometry.shapes import Shape
    from udfdask.masks.coverage import Coverage
    from udfdask.writing import Target


class UDFMethod(enum.Enum):
    """The methods that can process data; a UDF uses the first that it has.

    A UDF with a halo uses the first of ``NEIGHBORHOOD`` and ``PARTITION``, all others the first of
    ``TILE``, ``FRAME`` and ``PARTITION``.

    Examples
    --------
    >>> import udfdask as ud
    >>> class EitherUDF(ud.UDF):
    ...     def get_method(self):
    ...         return ud.UDFMethod.TILE if self.params.fast else ud.UDFMethod.FRAME
    ...     def process_frame(self, frame): ...
    ...     def process_tile(self, tile): ...
    >>> EitherUDF(fast=False).get_method()
    <UDFMethod.FRAME: 'frame'>
    """

    TILE = "tile"
    FRAME = "frame"
    NEIGHBORHOOD = "neighborhood"
    PARTITION = "partition"


class MaskedResult(NamedTuple):
    """A result with its valid-data mask, from `UDF.with_mask`.

    Examples
    --------
    >>> import numpy as np, udfdask as ud
    >>> ud.UDF().with_mask(np.arange(2), mask=[True, False])
    MaskedResult(array=array([0, 1]), mask=[True, False])
    """

    array: Any
    mask: Any


class UDF(BackendNames):
    """Base class of user-defined functions (UDFs), which process frames of a dask array.

    Subclass it, declare result buffers in `get_result_buffers`, and write one of
    ``process_tile(self, tile)`` (shape (n, *part of sig)), ``process_frame(self, frame)`` (shape
    `sig`) and ``process_partition(self, partition)`` (shape (n, *sig)); the first of them in this
    order is used. A UDF that looks at the frames around each position sets `halo`, and has
    ``process_neighborhood(self, frames)`` (shape (*window, *sig)) or ``process_partition`` (shape
    (*nav part with margins, *sig)). Optional methods are ``preprocess``, ``postprocess``,
    ``get_task_data``,
    ``get_shared_task_data``, ``merge(dest, src)``, ``merge_all(ordered_results)``, ``get_results``
    and ``get_result_axes``.

    A run never changes an instance: every chunk is processed by a new instance, ``cls(**kwargs)``,
    which is made from the parameters.

    Parameters
    ----------
    *args
        Not allowed, because each parameter needs a name.
    **kwargs
        The parameters, available as ``self.params``. They are sent to the workers.

    Attributes
    ----------
    params : Params
        The parameters.
    meta : UDFMeta
        Facts about the dataset and the data that are being processed.
    results : Results
        Views of the result buffers that match the data that are being processed.
    task_data : TaskData
        The return values of `get_shared_task_data` and `get_task_data`.
    xp : module
        The array module of the current backend.
    split_every : int or False or None
        Fan-in of the merge tree; False merges in one step; None for the configured fan-in.
    merge_assigns_nav : bool
        Promise that `merge` only assigns nav buffers: a UDF that has some is then merged in a tree.
    elementwise_results : bool
        Promise that `get_results` works row by row over nav: it then runs chunk by chunk.
    contiguous_nav : bool
        Ask for tiles and partitions whose frames are consecutive in flattened navigation order.
    writable_input : bool
        Ask for private, writable copies of the data.
    whole_frames : bool
        Ask for tiles that hold whole frames.
    halo : int or tuple or None
        Number of frames on each side of a position that the UDF sees: for all navigation axes, or a
        tuple with an int or a pair (before, after) for each of them. It can be set in `__init__`.
    boundary : {"mask", "nearest", "reflect", "periodic"}
        What stands for frames beyond the ends of the scan: nothing, the last frame, the scan in
        reverse order (``d c b a | a b c d | d c b a``), or its other end.
    neighbors_outside_roi : bool
        Whether frames outside of the region of interest are neighbors; if not, they are missing.
    keeps_units : tuple of str
        Promise that these results have the unit of the data, which labeled results then show.
    default_plots : tuple of str
        Names of the results that pictures show if none is named; by default all.
    calibrated : mapping of str to str
        Parameters in pixels, which users may also give in the unit of the signal axes, such as
        "10 mrad": `"length"` for a distance in any direction; `"y"` and `"x"` for a position along
        the last two axes, `"position"` for a pair (y, x), `"height"` and `"width"` for a distance
        along them. `"top"` and `"left"` are the smallest position of a range of this size,
        `"start"` and `"stop"` the ends of a range along the last axis. `"stretch"` and
        `"stretch_angle"` are those of an ellipse, which lengths become if pixels are not square.
        `"shift"` is a pair of signed distances (y, x), `"steps"` a distance that is rounded up to
        whole pixels, `"positions"` an array of shape (n, 2) or a pair of such an array and its
        unit, `"lengths"` a dataclass whose fields are distances in any direction. Positions may
        be the words "zero", of the axis, and "middle", of the frame. A run makes the instance again
        with numbers of pixels.
    promises : Promises
        Further promises, which make runs cheaper. Subclasses do not inherit them.

    Raises
    ------
    ArgumentTypeError
        If a parameter has no name.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> class MaxUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"peak": self.buffer(kind="nav", dtype=self.meta.input_dtype)}
    ...     def process_frame(self, frame):
    ...         self.results.peak[:] = frame.max()
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
    halo: Any = None
    boundary: str = "mask"
    neighbors_outside_roi: bool = True
    keeps_units: ClassVar[tuple[str, ...]] = ()
    default_plots: ClassVar[tuple[str, ...]] = ()
    calibrated: ClassVar[Mapping[str, str]] = MappingProxyType({})

    promises: ClassVar[Promises] = Promises()

    _mask_parameter: ClassVar[str | None] = None
    """Parameter with masks of a frame. Accessors convert the kinds of masks that only they know."""

    _plain_function: ClassVar[str | None] = None
    """What errors call the code that a user passed as a plain function, in place of the UDF."""

    params: Params
    meta: UDFMeta
    results: Results
    task_data: TaskData
    _kwargs: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _use_methods_of_mixins(cls)
        # an override in the subclass can break a promise of its base class
        if "promises" not in vars(cls):
            cls.promises = UDF.promises

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args:
            raise ArgumentTypeError(_without_names(type(self), args))
        self._kwargs = kwargs
        self.params = Params(kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_kwargs":
            raise NotAvailableError(_without_init(type(self)))
        when = _NOT_YET.get(name)
        if when is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise NotAvailableError(f"self.{name} does not exist yet: it exists {when}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remake, (type(self), self._kwargs))

    def __repr__(self) -> str:
        kwargs = self.__dict__.get("_kwargs", {})  # __init__ may not have set them yet
        shown = ", ".join(f"{k}={_short(v)}" for k, v in kwargs.items())
        return f"{type(self).__name__}({shown})"

    @property
    def xp(self) -> Any:
        """Array module of the current backend: CuPy for CuPy arrays, otherwise NumPy."""
        meta = self.__dict__.get("meta")
        return np if meta is None else meta._backend.dense.namespace()

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the result buffers.

        Returns
        -------
        mapping of str to BufferSpec
            Names, which must be Python identifiers, and the return values of `self.buffer(...)`.

        Raises
        ------
        NotImplementedError
            If the subclass does not implement this method.

        Examples
        --------
        >>> import udfdask as ud
        >>> class MeanUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {
        ...             "mean": self.buffer(kind="nav", dtype="float64"),  # a number for each frame
        ...             "frame": self.buffer(kind="sig"),  # a number for each pixel
        ...         }
        >>> list(MeanUDF().get_result_buffers())
        ['mean', 'frame']
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement get_result_buffers() "
            "and return a dictionary of self.buffer(...)"
        )

    def get_preferred_input_dtype(self) -> Any:
        """Choose the dtype of the data that the UDF gets, `meta.input_dtype`.

        It is the dtype that can hold both the return value and the dtype of the data.

        Returns
        -------
        dtype-like
            By default float32; `USE_NATIVE_DTYPE` keeps the dtype of the data.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> class MaxUDF(ud.UDF):
        ...     def get_preferred_input_dtype(self):
        ...         return self.USE_NATIVE_DTYPE
        ...     def get_result_buffers(self):
        ...         return {"max": self.buffer(kind="nav", dtype=self.meta.input_dtype)}
        ...     def process_frame(self, frame):
        ...         self.results.max[:] = frame.max()
        >>> ud.run_udf(da.ones((2, 3, 4, 4), dtype="uint16"), MaxUDF())["max"].dtype
        dtype('uint16')
        """
        return np.float32

    def get_backends(self) -> Any:
        """Return the array backends that the processing method accepts, in order of preference.

        Returns
        -------
        str or sequence of str
            Constants of this class such as `BACKEND_SCIPY_CSR`; by default only NumPy arrays. In
            matrix formats, tiles have the shape (n, pixels) and frames (1, pixels).

        Examples
        --------
        >>> import udfdask as ud
        >>> class CountUDF(ud.UDF):
        ...     def get_backends(self):
        ...         return (self.BACKEND_SPARSE_COO, self.BACKEND_NUMPY)
        >>> CountUDF().get_backends()
        ('sparse.COO', 'numpy')
        """
        return (self.BACKEND_NUMPY,)

    def get_tiling_preferences(self) -> Mapping[str, Any]:
        """Limit the size of the tiles that the UDF gets.

        Returns
        -------
        mapping
            `depth` in frames and `total_size` in bytes, positive numbers. The default of both is
            inf: no limit.

        Examples
        --------
        >>> import udfdask as ud
        >>> class StackUDF(ud.UDF):
        ...     def get_tiling_preferences(self):
        ...         return {"depth": 16, "total_size": self.TILE_SIZE_MAX}  # at most 16 frames
        >>> ud.UDF().get_tiling_preferences()
        {'depth': inf, 'total_size': inf}
        """
        return {"depth": self.TILE_DEPTH_DEFAULT, "total_size": self.TILE_SIZE_MAX}

    def get_method(self) -> UDFMethod:
        """Return the method that processes the data.

        Returns
        -------
        UDFMethod
            The first of process_tile, process_frame and process_partition that the UDF has; with a
            halo, the first of process_neighborhood and process_partition.

        Raises
        ------
        ArgumentTypeError
            If the UDF has none of them.

        Examples
        --------
        >>> import udfdask as ud
        >>> class MaxUDF(ud.UDF):
        ...     def process_frame(self, frame):
        ...         self.results.max[:] = frame.max()
        >>> MaxUDF().get_method()
        <UDFMethod.FRAME: 'frame'>
        """
        around = (UDFMethod.NEIGHBORHOOD, UDFMethod.PARTITION)
        single = (UDFMethod.TILE, UDFMethod.FRAME, UDFMethod.PARTITION)
        name, offered = type(self).__name__, single if self.halo is None else around
        for method in offered:
            if hasattr(self, f"process_{method.value}"):
                return method
        if self.halo is not None:
            raise ArgumentTypeError(
                f"{name} has halo={self.halo!r}, but no method for frames with their neighbors: "
                "implement process_neighborhood or process_partition, or leave the halo out"
            )
        if hasattr(self, "process_neighborhood"):
            raise ArgumentTypeError(
                f"{name} has process_neighborhood, but no halo: set halo = 1 in the class for the "
                "frames next to each position"
            )
        from udfdask.udf.written_methods import misspelled_methods  # only errors need it

        wanted = [f"process_{method.value}" for method in UDFMethod]
        hints = "".join(f". {text}" for text in misspelled_methods(self, wanted, cutoff=0.6))
        raise ArgumentTypeError(
            f"{name} has no processing method: implement one of "
            f"process_tile, process_frame or process_partition{hints}"
        )

    def get_task_data(self) -> Mapping[str, Any]:
        """Return values by name that each task computes for itself.

        This method runs for every chunk; `meta.slice`, `meta.coordinates` and
        `meta.partition_shape` describe the chunk.

        Returns
        -------
        mapping of str to object
            Available as ``self.task_data``; empty by default.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask as ud
        >>> class NearestUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"distance": self.buffer(kind="nav")}
        ...     def get_task_data(self):
        ...         return {"distances": np.hypot(*self.meta.coordinates.T)}
        ...     def process_partition(self, partition):
        ...         self.results.distance[:] = self.task_data.distances
        >>> ud.run_udf(da.ones((2, 2, 4, 4)), NearestUDF())["distance"].compute()
        array([[0.       , 1.       ],
               [1.       , 1.4142135]], dtype=float32)
        """
        return {}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return expensive values by name that all chunks share, such as mask stacks or FFT plans.

        This method runs once per process and run, and does not know the chunk. Several threads use
        the returned values at the same time, so they must not be changed.

        Returns
        -------
        mapping of str to object
            Available as ``self.task_data``, also in `get_task_data`; empty by default.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.masks import circular
        >>> class DiskUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"total": self.buffer(kind="nav")}
        ...     def get_shared_task_data(self):
        ...         h, w = self.meta.dataset_shape.sig
        ...         return {"disk": circular(w // 2, h // 2, w, h, self.params.r)}
        ...     def process_frame(self, frame):
        ...         self.results.total[:] = frame[self.task_data.disk].sum()
        >>> ud.run_udf(da.ones((2, 8, 8)), DiskUDF(r=2))["total"].compute()
        array([13., 13.], dtype=float32)
        """
        return {}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Describe the extra dimensions of results.

        Returns
        -------
        mapping of str to tuple of Axis
            An `Axis` for each extra dimension of a buffer. Results without an entry have
            axes called ``{buffer}_dim_0``, ``{buffer}_dim_1``, ...

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> class RangeUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"range": self.buffer(kind="nav", extra_shape=(2,))}
        ...     def get_result_axes(self):
        ...         return {"range": (ud.Axis(name="end", labels=("min", "max")),)}
        ...     def process_frame(self, frame):
        ...         self.results.range[:] = frame.min(), frame.max()
        >>> result = ud.run_udf(da.ones((2, 3, 4, 4)), RangeUDF())
        >>> result.extra_axes["range"][0].labels
        ('min', 'max')
        """
        return {}

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the unit of results; ``self.meta.axes`` has the units of the axes.

        Returns
        -------
        mapping of str to str or None
            A unit such as "mrad" for each buffer. By default, results that are named in
            `keeps_units` have the unit of the data, and the unit of all others is not known.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> class PowerUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"power": self.buffer(kind="nav")}
        ...     def get_result_units(self):
        ...         return {"power": self.meta.unit and f"({self.meta.unit})^2"}
        ...     def process_frame(self, frame):
        ...         self.results.power[:] = (frame**2).sum()
        >>> ud.run_udf(da.ones((2, 3, 4, 4)), PowerUDF(), unit="counts").units
        {'power': '(counts)^2'}
        """
        return dict.fromkeys(self.keeps_units, self.meta.unit)

    def get_detector_masks(self) -> Mapping[str, Any]:
        """Return masks of the pixels that the results are computed from, for pictures.

        Returns
        -------
        mapping of str to numpy.ndarray of bool, shape sig
            A mask for each detector by its name. By default there is none, which means all pixels.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask as ud
        >>> class LeftUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"left": self.buffer(kind="nav")}
        ...     def get_detector_masks(self):
        ...         h, w = self.meta.dataset_shape.sig
        ...         return {"left": np.tile(np.arange(w) < w // 2, (h, 1))}
        ...     def process_frame(self, frame):
        ...         self.results.left[:] = frame[:, : frame.shape[1] // 2].sum()
        >>> ud.run_udf(da.ones((2, 4, 4)), LeftUDF())["left"].compute()
        array([8., 8.], dtype=float32)
        """
        return {}

    def preprocess(self) -> None:
        """Initialize the buffers before a chunk is processed and before partials are merged.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask as ud
        >>> class MinUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"min": self.buffer(kind="sig")}
        ...     def preprocess(self):
        ...         self.results.min[:] = np.inf  # buffers start with zeros
        ...     def process_frame(self, frame):
        ...         self.results.min[:] = np.minimum(self.results.min, frame)
        ...     def merge(self, dest, src):
        ...         dest.min[:] = np.minimum(dest.min, src.min)
        >>> ud.run_udf(da.ones((2, 3, 2)), MinUDF(), sig_dims=1)["min"].compute()
        array([1., 1.], dtype=float32)
        """

    def postprocess(self) -> None:
        """Finish the buffers of a chunk after all its frames have been processed.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> class RootUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"norm": self.buffer(kind="nav")}
        ...     def process_tile(self, tile):  # perhaps a part of the frames
        ...         self.results.norm += (tile**2).sum(axis=(1, 2))
        ...     def postprocess(self):
        ...         self.results.norm **= 0.5
        >>> ud.run_udf(da.ones((2, 4, 4)), RootUDF())["norm"].compute()
        array([4., 4.], dtype=float32)
        """

    def cleanup(self) -> None:
        """Release the resources of a task, such as open files; runs after all other methods.

        Examples
        --------
        >>> import tempfile, dask.array as da, udfdask as ud
        >>> class LogUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"total": self.buffer(kind="nav")}
        ...     def get_task_data(self):
        ...         return {"log": tempfile.TemporaryFile("w")}
        ...     def process_frame(self, frame):
        ...         self.results.total[:] = frame.sum()
        ...         self.task_data.log.write("a frame")
        ...     def cleanup(self):
        ...         self.task_data.log.close()
        >>> ud.run_udf(da.ones((2, 4, 4)), LogUDF())["total"].compute()
        array([16., 16.], dtype=float32)
        """

    def _targets(self, sources: Sequence[str]) -> Sequence[Target]:
        """Check and return the files that a run writes; `sources` are the files that it reads."""
        return ()

    def _warnings(self, calibration: Calibration) -> Sequence[str]:
        """Return what users should know before they run this UDF over data with these axes."""
        return ()

    def _coverages(self, sig: Shape) -> Sequence[Coverage]:
        """Return how much of a frame each detector covers, for `explain`; `sig`: shape of a frame.

        Only detectors that are cheap to make are described.
        """
        return ()

    def _center_names(self) -> tuple[str, ...]:
        """Return the parameters of a common center, whose default a run can take from the axes.

        They are in `calibrated`. There are none if each frame has its own center.
        """
        return ()

    def _for_run(self) -> UDF:
        """Return the UDF for one run: itself, unless it keeps state for a single run."""
        return self

    def merge(self, dest: Views, src: Views) -> None:
        """Merge partial results `src` into `dest`; the default copies nav buffers.

        Parameters
        ----------
        dest : Views
            Buffers to merge into, by attribute. Shape (n, *extra_shape) for nav, with the rows of
            `src`; (*sig, *extra_shape) for sig; `extra_shape` or (1,) for single.
        src : Views
            Private copies of the partial results, in the same shapes and dtypes.

        Raises
        ------
        ArgumentTypeError
            If the default implementation cannot cast a dtype safely.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask as ud
        >>> class MaxUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"max": self.buffer(kind="sig")}
        ...     def preprocess(self):
        ...         self.results.max[:] = -np.inf
        ...     def process_frame(self, frame):
        ...         self.results.max[:] = np.maximum(self.results.max, frame)
        ...     def merge(self, dest, src):
        ...         dest.max[:] = np.maximum(dest.max, src.max)
        >>> x = da.arange(12, chunks=4).reshape(6, 2)
        >>> ud.run_udf(x, MaxUDF(), sig_dims=1)["max"].compute()
        array([10., 11.], dtype=float32)
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
        """Compute results by name from the merged buffers; a buffer that is left out is a result.

        Returns
        -------
        mapping of str to array
            Arrays whose dtype has the declared kind, or return values of `with_mask`. Nav results
            hold the frames of the ROI, shape (frames, *extra_shape), or the whole scan, shape
            (*nav, *extra_shape). All `result_only` buffers are required.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> class MeanUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {
        ...             "sum": self.buffer(kind="sig", use="private"),
        ...             "mean": self.buffer(kind="sig", use="result_only"),
        ...         }
        ...     def process_frame(self, frame):
        ...         self.results.sum += frame
        ...     def merge(self, dest, src):
        ...         dest.sum += src.sum
        ...     def get_results(self):
        ...         return {"mean": self.results.sum / self.meta.dataset_shape.nav.size}
        >>> x = da.arange(12, chunks=4).reshape(6, 2)
        >>> ud.run_udf(x, MeanUDF(), sig_dims=1)["mean"].compute()
        array([5., 6.], dtype=float32)
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
            One entry per frame, per pixel, or per run.
        extra_shape : tuple of int
            Axes after the axes of the kind; sizes may be 0.
        dtype : dtype-like
            Any NumPy dtype.
        where : {None, "device"}
            With "device", the buffer is a CuPy array while the UDF processes CuPy data. If the
            chunks are CuPy arrays, this includes merges. By default, the buffer is a NumPy array;
            `forbuf` converts to it.
        use : {None, "private", "result_only"}
            `private` buffers are not results; `get_results` fills `result_only` buffers.
        fill_value : scalar, optional
            Value of `res[name]` outside the ROI; by default NaN, NaT, 0, False, "" or None,
            depending on the dtype.

        Returns
        -------
        BufferSpec
            The declaration.

        Raises
        ------
        ArgumentValueError
            If an argument has none of these values.
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
    def aux_data(cls, data: Any, kind: Kind, extra_shape: Any = (), dtype: Any = None) -> AuxData:
        """Create a parameter with a value for each frame or pixel; a UDF sees the current part.

        For kind nav, the parameter has the shape `extra_shape` (or (1,)) in `process_frame`, and
        (frames, *extra_shape) in `process_tile` and `process_partition`. For kind sig, it covers
        the same part of the signal as the data, followed by `extra_shape`. In `preprocess`,
        `postprocess`, `get_task_data`, `merge` and `get_results` it has the rows of the chunk, of
        the partial result or of the run.

        Parameters
        ----------
        data : numpy.ndarray, dask.array.Array, xarray.DataArray or HyperSpy signal
            The values, of shape (*nav, *extra_shape) for kind nav, (*sig, *extra_shape) for sig,
            and `extra_shape` for single; any other layout of the same size is reshaped. Each task
            gets the values of its chunk. A dask array can be the result of another UDF over the
            same data. A run of an accessor aligns a DataArray or a signal with the data; any other
            run refuses other orders of axes.
        kind : {"nav", "sig", "single"}
            One value per frame, per pixel, or per run.
        extra_shape : tuple of int
            Shape of each value.
        dtype : dtype-like, optional
            Dtype of the values, by default that of the data. Arrays must have it; lists are
            converted to it.

        Returns
        -------
        AuxData
            Pass it to a UDF as a parameter.

        Raises
        ------
        ArgumentValueError
            If `kind` or `extra_shape` is invalid; in `run_udf`, if the size does not match, or the
            named axes of the values are in another order than those of the data.
        ArgumentTypeError
            If `data` is not an array, or its dtype differs from `dtype`.

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
        """Combine a result with its valid-data mask, in `get_results`.

        Parameters
        ----------
        array : array
            The result.
        mask : bool or array of bool
            True where the result is valid; broadcasts to `array`.

        Returns
        -------
        MaskedResult
            Return it from `get_results`.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> ud.UDF().with_mask(np.arange(3), mask=True).mask
        True
        """
        return MaskedResult(array, mask)

    def forbuf(self, array: Any, target: AnyArray) -> Any:
        """Convert an array to the array type and shape of a result buffer.

        Parameters
        ----------
        array : array
            Array of the current backend.
        target : array
            View of the buffer that the array is then assigned to.

        Returns
        -------
        array
            The values in the shape of `target`: a NumPy array, or a CuPy array for a buffer on the
            device.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> ud.UDF().forbuf(np.arange(6), np.zeros((2, 3))).shape
        (2, 3)
        """
        return in_backend(array, backend_of(target)).reshape(target.shape)


def _use_methods_of_mixins(cls: type[UDF]) -> None:
    """Use the methods of mixins that a class lists after `UDF`, as in ``class A(UDF, Mixin)``.

    Without this, the defaults of `UDF` would hide them, and they would silently never run.
    """
    mixins = cls.__mro__[cls.__mro__.index(UDF) + 1 : -1]
    for name, default in vars(UDF).items() if mixins else ():
        if not isfunction(default) or name.startswith("_") or name in _HELPERS:
            continue
        method = next((vars(base)[name] for base in mixins if name in vars(base)), None)
        if method is not None and getattr(cls, name) is default:
            setattr(cls, name, method)


_HELPERS = frozenset({"buffer", "with_mask", "forbuf"})
"""Methods that a UDF calls and does not override."""

_NOT_YET = {
    "meta": "while a UDF is declared, run or merged",
    "results": "while a chunk is processed, and in get_results",
    "task_data": "while a chunk is processed",
    "params": "after super().__init__(**kwargs)",
}
"""Attributes that do not always exist, and when they do."""


def _without_init(cls: type[UDF]) -> str:
    """Return the message for a class with an `__init__` that does not call that of `UDF`."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    parameters = list(signature(owner).parameters.values())
    if "__dataclass_fields__" in vars(owner):
        given = ", ".join(f"{p.name}=self.{p.name}" for p in parameters)
        remedy = f"write a method __post_init__(self) that calls super().__init__({given})"
    else:
        named = [p for p in parameters if p.kind is not Parameter.VAR_POSITIONAL]
        given = ", ".join(
            f"**{p.name}" if p.kind is Parameter.VAR_KEYWORD else f"{p.name}={p.name}"
            for p in named
        )
        remedy = f"add super().__init__({given}) to it"
    return (
        f"{cls.__name__} cannot run, because {owner.__name__}.__init__ does not call "
        f"super().__init__: {remedy}. Each task makes a new instance from these arguments"
    )


def _without_names(cls: type[UDF], args: tuple[Any, ...]) -> str:
    """Return the message for parameters that `super().__init__` gets without their names."""
    count = f"{len(args)} argument{'s' if len(args) > 1 else ''} without a name"
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    if owner is UDF:
        return (
            f"{cls.__name__} got {count}: pass parameters by name, such as "
            f"{cls.__name__}(threshold=3)"
        )
    named = [
        p.name
        for p in signature(owner).parameters.values()
        if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    ]
    given = ", ".join(f"{name}={name}" for name in named) or "name=value"
    return (
        f"super().__init__ of {owner.__name__} got {count}: pass parameters by name: "
        f"super().__init__({given})"
    )


def overrides(udf: UDF, method: str) -> bool:
    """Return whether the class, a mixin or the instance of a UDF overrides a method of `UDF`."""
    return getattr(getattr(udf, method), "__func__", None) is not getattr(UDF, method)


def _remake(cls: type[UDF], kwargs: dict[str, Any]) -> UDF:
    """Create a UDF from its parameters, when pickle loads it."""
    return cls(**kwargs)


def _short(value: Any) -> str:
    """Return a repr of at most 60 characters; an array is shown by its shape and dtype."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        return f"<{type(value).__name__} {value.shape} {value.dtype}>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
