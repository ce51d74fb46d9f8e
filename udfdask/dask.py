"""Importing this module adds the accessor `udf` to dask arrays: ``array.udf.run_udf(...)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack, overload

import dask.array as da

from udfdask.explanation.describe import Explanation
from udfdask.results.result import Result
from udfdask.run.map_frames import map_frames as map_on_array
from udfdask.run.options import IterOptions, RunOptions, forwards
from udfdask.run.progressive import UDFIterator
from udfdask.run.progressive import run_udf_iter as iterate_on_array
from udfdask.run.run_udf import explain as explain_on_array
from udfdask.run.run_udf import run_udf as run_on_array
from udfdask.run.virtual_image import IMAGE, DetectorOptions, make_detector
from udfdask.udf import UDF
from udfdask.udfs.virtual_detector import VirtualDetectorUDF

__all__ = ["ArrayAccessor"]


class ArrayAccessor:
    """Runs UDFs over a dask array, as ``array.udf``.

    Each method calls the function of the same name in `udfdask` with the array. The documentation
    of these functions describes options and errors.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import udfdask.dask
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8))
    >>> binned = da.coarsen(np.sum, x, {2: 2, 3: 2})
    >>> bright = binned.udf.run_udf(SumSigUDF(), sig_dims=2)["intensity"] > 10
    >>> bright.sum().compute()
    np.int64(24)
    """

    __slots__ = ("_array",)

    def __init__(self, array: da.Array) -> None:
        self._array = array

    def __repr__(self) -> str:
        return f"<ArrayAccessor of {self._array!r}>"

    @overload
    def run_udf(
        self, udf: UDF, *, sig_dims: int | None = ..., roi: Any = ..., **options: Unpack[RunOptions]
    ) -> Result: ...
    @overload
    def run_udf(
        self,
        udf: Sequence[UDF],
        *,
        sig_dims: int | None = ...,
        roi: Any = ...,
        **options: Unpack[RunOptions],
    ) -> tuple[Result, ...]: ...
    @overload
    def run_udf(
        self,
        udf: Mapping[str, UDF],
        *,
        sig_dims: int | None = ...,
        roi: Any = ...,
        **options: Unpack[RunOptions],
    ) -> dict[str, Result]: ...
    @forwards(RunOptions, run_on_array)
    def run_udf(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        *,
        sig_dims: int | None = None,
        roi: Any = None,
        **options: Unpack[RunOptions],
    ) -> Result | tuple[Result, ...] | dict[str, Result]:
        """Run one UDF, or several in one pass, over the array; nothing is computed yet.

        Parameters
        ----------
        udf, sig_dims, roi, **options
            As in `udfdask.run_udf`.

        Returns
        -------
        Result, tuple of Result or dict of Result
            A `Result` for a UDF, a tuple of them for a list, a dictionary for a dictionary.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument or a UDF's declaration is invalid.
        UDFError
            As in `udfdask.run_udf`.

        Examples
        --------
        >>> import dask.array as da
        >>> import udfdask.dask
        >>> from udfdask.udfs import SumUDF
        >>> x = da.ones((4, 6, 2, 2))
        >>> x.udf.run_udf(SumUDF(), sig_dims=2, roi=(0, 1))["intensity"].compute()
        array([[1., 1.],
               [1., 1.]])
        """
        return run_on_array(self._array, udf, sig_dims=sig_dims, roi=roi, **options)

    @forwards(DetectorOptions, VirtualDetectorUDF, run_on_array)
    def virtual_image(
        self,
        detector: Any = "disk",
        *,
        sig_dims: int | None = None,
        roi: Any = None,
        **options: Unpack[DetectorOptions],
    ) -> da.Array:
        """Return the image of a virtual detector, lazily: the sum of its pixels in each frame.

        Parameters
        ----------
        detector : {"disk", "ring", "rect", "point", "window"} or array of bool, shape `sig`
            Shape of the detector, or a mask, as in `udfdask.udfs.VirtualDetectorUDF`.
        sig_dims, roi, **options
            As in `udfdask.run_udf`.

        Returns
        -------
        dask.array.Array, shape nav
            The image.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If the detector or an option is invalid.

        See Also
        --------
        udfdask.udfs.ApplyMasksUDF : Several detectors in one pass, by name.

        Examples
        --------
        >>> import dask.array as da
        >>> import udfdask.dask
        >>> x = da.ones((2, 3, 16, 16), chunks=(1, 3, 16, 16), dtype="uint16")
        >>> x.udf.virtual_image("ring", ri=4, ro=7).compute()
        array([[100, 100, 100],
               [100, 100, 100]])
        """
        udf, run = make_detector(self.virtual_image, detector, options)
        image: da.Array = run_on_array(self._array, udf, sig_dims=sig_dims, roi=roi, **run)[IMAGE]
        return image

    @overload
    def map_frames(
        self, func: Callable[..., Any], *, output_names: None = ..., **options: Any
    ) -> da.Array: ...
    @overload
    def map_frames(
        self, func: Callable[..., Any], *, output_names: Sequence[str], **options: Any
    ) -> Result: ...
    def map_frames(
        self,
        func: Callable[..., Any],
        *,
        sig_dims: int | None = None,
        roi: Any = None,
        output_shape: tuple[int, ...] | None = None,
        output_dtype: Any = None,
        ragged: bool = False,
        output_names: Sequence[str] | None = None,
        backends: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> da.Array | Result:
        """Call a function with every frame, lazily.

        Parameters
        ----------
        func, sig_dims, roi, output_shape, output_dtype, ragged, output_names, backends, **kwargs
            As in `udfdask.map_frames`.

        Returns
        -------
        dask.array.Array, shape (*nav, *output_shape), or Result
            One entry per frame. With `output_names`, a `Result` with such an array for each name.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument or a UDF's declaration is invalid.
        UDFError
            As in `udfdask.map_frames`.

        Examples
        --------
        >>> import dask.array as da
        >>> import numpy as np
        >>> import udfdask.dask
        >>> da.ones((2, 3, 4, 5)).udf.map_frames(np.sum, axis=-1).shape
        (2, 3, 4)
        """
        mapped: da.Array | Result = map_on_array(
            self._array,
            func,
            sig_dims=sig_dims,
            roi=roi,
            output_shape=output_shape,
            output_dtype=output_dtype,
            ragged=ragged,
            output_names=output_names,
            backends=backends,
            **kwargs,
        )
        return mapped

    @forwards(IterOptions, iterate_on_array)
    def run_udf_iter(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        *,
        sig_dims: int | None = None,
        roi: Any = None,
        **options: Unpack[IterOptions],
    ) -> UDFIterator:
        """Run UDFs over the array and yield intermediate results.

        Parameters
        ----------
        udf, sig_dims, roi, **options
            As in `udfdask.run_udf_iter`.

        Returns
        -------
        UDFIterator
            Yields a `Snapshot` after each merged chunk.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument or a UDF's declaration is invalid.
        UDFError
            As in `udfdask.run_udf_iter`.

        Examples
        --------
        >>> import dask.array as da
        >>> import udfdask.dask
        >>> from udfdask.udfs import SumUDF
        >>> x = da.ones((3, 3, 2, 2), chunks=(1, 3, 2, 2))
        >>> for snapshot in x.udf.run_udf_iter(SumUDF(), sig_dims=2):
        ...     print(snapshot.damage.sum())
        3
        6
        9
        """
        return iterate_on_array(self._array, udf, sig_dims=sig_dims, roi=roi, **options)

    @forwards(RunOptions, explain_on_array)
    def explain(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        *,
        sig_dims: int | None = None,
        roi: Any = None,
        **options: Unpack[RunOptions],
    ) -> Explanation:
        """Describe what `run_udf` would do with the same arguments.

        Parameters
        ----------
        udf, sig_dims, roi, **options
            As in `udfdask.explain`.

        Returns
        -------
        Explanation
            `print` shows chunks, tasks, bytes read, memory of a task, tile shape and merges.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument or a UDF's declaration is invalid.
        UDFError
            As in `udfdask.explain`.

        Examples
        --------
        >>> import dask.array as da
        >>> import udfdask.dask
        >>> from udfdask.udfs import SumUDF
        >>> da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)).udf.explain(SumUDF()).n_chunks
        4
        """
        return explain_on_array(self._array, udf, sig_dims=sig_dims, roi=roi, **options)


class _AccessorAttribute:
    """The attribute `udf` of dask arrays: the accessor, or on the class, the accessor's class."""

    def __get__(self, array: da.Array | None, owner: type) -> Any:
        return ArrayAccessor if array is None else ArrayAccessor(array)


# dask has no registry of accessors for arrays
da.Array.udf = _AccessorAttribute()  # type: ignore[attr-defined]
