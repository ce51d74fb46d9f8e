"""The methods with which a UDF says what it needs and gives: the plan calls them, on no data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udfdask.backends.table import BackendNames
from udfdask.base.types import Kind, Use, Where
from udfdask.errors import ArgumentTypeError
from udfdask.geometry.axes import Axis
from udfdask.udf.aux_data import AuxData, make_aux
from udfdask.udf.buffers import BufferSpec, declare
from udfdask.udf.processing import UDFMethod

if TYPE_CHECKING:
    from udfdask.udf.meta import UDFMeta


class Declarations(BackendNames):
    """The methods of a UDF that a plan calls, and what they return."""

    UDF_METHOD: ClassVar[type[UDFMethod]] = UDFMethod
    USE_NATIVE_DTYPE: ClassVar[Any] = np.bool_
    TILE_DEPTH_DEFAULT: ClassVar[float] = np.inf
    TILE_DEPTH_MAX: ClassVar[float] = np.inf
    TILE_SIZE_BEST_FIT: ClassVar[float] = np.inf
    TILE_SIZE_MAX: ClassVar[float] = np.inf

    if TYPE_CHECKING:
        halo: Any
        keeps_units: ClassVar[tuple[str, ...]]
        meta: UDFMeta

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the result buffers.

        Returns
        -------
        mapping of str to BufferSpec
            Names (Python identifiers), and the return values of `self.buffer(...)`.

        Raises
        ------
        NotImplementedError
            If the subclass does not implement this method.

        Examples
        --------
        >>> import udfdask as ud
        >>> class MeanUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"mean": self.buffer(kind="nav")}  # a number for each frame
        >>> list(MeanUDF().get_result_buffers())
        ['mean']
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
        >>> import udfdask as ud
        >>> class MaxUDF(ud.UDF):
        ...     def get_preferred_input_dtype(self):
        ...         return self.USE_NATIVE_DTYPE
        ...     def get_result_buffers(self):
        ...         return {"max": self.buffer(kind="nav", dtype=self.meta.input_dtype)}
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
            `depth` in frames and `total_size` in bytes; the default of both is inf, no limit.

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
        ...     def process_frame(self, frame): ...
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

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Describe the extra dimensions of results.

        Returns
        -------
        mapping of str to tuple of Axis
            An `Axis` for each extra dimension of a buffer. Results without an entry have
            axes called ``{buffer}_dim_0``, ``{buffer}_dim_1``, ...

        Examples
        --------
        >>> import udfdask as ud
        >>> class RangeUDF(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"range": self.buffer(kind="nav", extra_shape=(2,))}
        ...     def get_result_axes(self):
        ...         return {"range": (ud.Axis(name="end", labels=("min", "max")),)}
        """
        return {}

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the unit of results; ``self.meta.axes`` has the units of the axes.

        Returns
        -------
        mapping of str to str or None
            A unit such as "mrad" for each buffer. By default, those in `keeps_units` have the unit
            of the data, and the others are not known.

        Examples
        --------
        >>> import udfdask as ud
        >>> class PowerUDF(ud.UDF):
        ...     def get_result_units(self):
        ...         return {"power": self.meta.unit and f"({self.meta.unit})^2"}
        """
        return dict.fromkeys(self.keeps_units, self.meta.unit)

    def get_detector_masks(self) -> Mapping[str, Any]:
        """Return masks of the pixels that the results are computed from, for pictures.

        Returns
        -------
        mapping of str to numpy.ndarray of bool, shape sig
            A mask for each detector by its name; by default none, which means all pixels.

        Examples
        --------
        >>> import numpy as np, udfdask as ud
        >>> class LeftUDF(ud.UDF):
        ...     def get_detector_masks(self):
        ...         h, w = self.meta.dataset_shape.sig
        ...         return {"left": np.tile(np.arange(w) < w // 2, (h, 1))}
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
            With "device", the buffer is a CuPy array while the UDF processes CuPy data, and in
            merges if the chunks are CuPy arrays. By default it is a NumPy array.
        use : {None, "private", "result_only"}
            `private` buffers are not results; `get_results` fills `result_only` buffers.
        fill_value : scalar, optional
            Value of `res[name]` outside the ROI; by default NaN, NaT, 0, False, "" or None.

        Returns
        -------
        BufferSpec
            The declaration.

        Raises
        ------
        ArgumentValueError
            If an argument has none of these values.
        TypeError
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
        (frames, *extra_shape) in other methods. For kind sig, it is the same part as the data.

        Parameters
        ----------
        data : numpy.ndarray, dask.array.Array, xarray.DataArray or HyperSpy signal
            The values, of shape (*nav, *extra_shape) for kind nav, (*sig, *extra_shape) for sig,
            and `extra_shape` for single; any other layout of the same size is reshaped. An accessor
            aligns a DataArray or a signal with the data; other runs refuse other orders of axes.
        kind : {"nav", "sig", "single"}
            One value per frame, per pixel, or per run.
        extra_shape : tuple of int
            Shape of each value.
        dtype : dtype-like, optional
            Dtype of the values, by default the one they have, in native byte order. An array of
            another dtype is refused; lists are converted.

        Returns
        -------
        AuxData
            Pass it to a UDF as a parameter.

        Raises
        ------
        ArgumentValueError
            If `kind` or `extra_shape` is invalid; in `run_udf`, if the values do not fit the data.
        ArgumentTypeError
            If `data` is not an array, or its dtype differs from `dtype`.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask as ud
        >>> class Scaled(ud.UDF):
        ...     def get_result_buffers(self):
        ...         return {"total": self.buffer(kind="nav")}
        ...     def process_frame(self, frame):
        ...         self.results.total[:] = self.params.factor * frame.sum()
        >>> factor = ud.UDF.aux_data(np.arange(2, dtype="float32"), kind="nav")
        >>> ud.run_udf(da.ones((2, 4, 4)), Scaled(factor=factor))["total"].compute()
        array([ 0., 16.], dtype=float32)
        """
        return make_aux(data, kind, extra_shape, dtype)
