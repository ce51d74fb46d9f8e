"""The accessor `udf` of DataArrays and Datasets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack, overload

import xarray as xr

from udfdask.errors import ArgumentValueError
from udfdask.explanation.describe import Explanation
from udfdask.io.labeled_array import SIGNAL_DIMS, own_name
from udfdask.results.labels.from_dataarray import Arranged, arrange, choose_variable
from udfdask.run.map_frames import call_of, check_own_names, make_frame_udf, name_of_map
from udfdask.run.options import (
    IterOptions,
    RunOptions,
    check_iter_options,
    check_names,
    forwards,
)
from udfdask.run.progressive.start import prepare_run
from udfdask.run.progressive.start import run_udf_iter as iterate_on_array
from udfdask.run.run_udf import explain_for
from udfdask.run.run_udf import run_udf as run_on_array
from udfdask.run.virtual_image import DetectorOptions, make_detector
from udfdask.tracebacks import own_lines_hidden
from udfdask.udf import UDF
from udfdask.udfs.virtual_detector import VirtualDetectorUDF
from udfdask.xarray import run as running
from udfdask.xarray.progressive import LabeledIterator, LabeledSnapshot

SigDims = int | str | Sequence[Hashable]
"""Names of the signal dimensions, or their number if they are the last dimensions."""


class DatasetOptions(RunOptions, total=False):
    """Options of runs that give Datasets."""

    rename: Mapping[str, Hashable] | None
    keep_attrs: bool | None
    valid_masks: bool


class _Runs:
    """The methods of both accessors; `_variable` chooses the data."""

    def _variable(self, sig_dims: SigDims | None) -> xr.DataArray:
        """Return the data of a run with these signal dimensions."""
        raise NotImplementedError

    def _arranged(
        self,
        udf: Any,
        sig_dims: SigDims | None,
        roi: Any,
        options: Mapping[str, Any],
        keep_attrs: bool | None = None,
    ) -> tuple[Arranged, Any, dict[str, Any]]:
        """Return the data of a run, its UDFs and options, aligned with the data."""
        data = arrange(self._variable(sig_dims), sig_dims, roi, keep_attrs)
        return data, *running.read_arguments(data, udf, options)

    @overload
    def run_udf(
        self,
        udf: UDF,
        sig_dims: SigDims | None = ...,
        roi: Any = ...,
        **options: Unpack[DatasetOptions],
    ) -> xr.Dataset: ...
    @overload
    def run_udf(
        self,
        udf: Sequence[UDF],
        sig_dims: SigDims | None = ...,
        roi: Any = ...,
        **options: Unpack[DatasetOptions],
    ) -> tuple[xr.Dataset, ...]: ...
    @overload
    def run_udf(
        self,
        udf: Mapping[str, UDF],
        sig_dims: SigDims | None = ...,
        roi: Any = ...,
        **options: Unpack[DatasetOptions],
    ) -> dict[str, xr.Dataset]: ...
    @forwards(RunOptions, run_on_array)
    def run_udf(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        sig_dims: SigDims | None = None,
        roi: Any = None,
        *,
        rename: Mapping[str, Hashable] | None = None,
        keep_attrs: bool | None = None,
        valid_masks: bool = False,
        **options: Unpack[RunOptions],
    ) -> xr.Dataset | tuple[xr.Dataset, ...] | dict[str, xr.Dataset]:
        """Run one UDF, or several in one pass, and return labeled results.

        Parameters
        ----------
        udf : UDF, or list, tuple or dict of UDF
            The UDFs to run. All UDFs of a list or dictionary share one pass over the data.
        sig_dims : str, sequence of hashable, or int, optional
            Names of the signal dimensions, in the order of the axes of a frame, or their number if
            they are the last dimensions. By default, the names in the attribute `signal_dims` of
            the data, as `OpenedFile.to_xarray` writes them; without this attribute, the last two
            dimensions. This is an error if the names say otherwise: in (y, x, time), x belongs to
            y.
        roi : xarray.DataArray, dict or array-like, optional
            The scan positions to process. A boolean DataArray is aligned by its coordinates, and
            repeated along navigation dimensions that it does not have. A dictionary selects as
            `DataArray.sel` does: ``{"y": slice(1.5, 3.0)}`` is the labels from 1.5 to 3.0, both
            included; along a dimension without coordinates, integers are positions. All other forms
            are as in `udfdask.run_udf`, in the order of the navigation dimensions.
        rename : dict, optional
            New names of variables: ``{"a": "b"}`` calls the result ``"a"`` ``"b"``.
        keep_attrs : bool, optional
            Whether variables and Datasets get the attributes of the data; by default as set by
            xarray's option `keep_attrs`. Attributes that describe values, such as `units` and
            `long_name`, are kept only for results in the unit of the data (`UDF.keeps_units`).
        valid_masks : bool
            Add a boolean variable ``{name}_valid`` for each result.
        axes, unit, corrections
            As in `udfdask.run_udf`.
        descan : Descan, xarray.DataArray or array-like, optional
            Shifts that are removed from the frames before UDFs see them, after corrections, in
            pixels along each of `sig_dims`: shape (*nav, sig dims). A DataArray is aligned by its
            coordinates, and repeated along navigation dimensions that it does not have. A `Descan`
            can also shift by parts of a pixel.
        **options
            As in `udfdask.run_udf`.

        Returns
        -------
        xarray.Dataset, tuple of xarray.Dataset or dict of xarray.Dataset
            A Dataset for a UDF, a tuple of them for a list, a dictionary of them with the same
            names for a dictionary. Variables of kind nav have the navigation dimensions, variables
            of kind sig the signal dimensions. `UDF.get_result_axes` gives the names and coordinates
            of extra dimensions. Coordinates are kept if the result has all their dimensions.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument or a UDF's declaration is invalid: a dimension is unknown, a dimension in
            the attribute `signal_dims` is gone and `sig_dims` is not given, the ROI cannot be
            aligned, a result has the name of a dimension, or not exactly one variable of a
            Dataset fits the signal dimensions.
        UDFError
            As in `udfdask.run_udf`.

        Warns
        -----
        UDFWarning
            If a task needs much memory, large data without chunks are processed at once, or `roi`
            selects no position.

        See Also
        --------
        udfdask.run_udf : Return results without labels.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> from udfdask.udfs import SumSigUDF, SumUDF
        >>> array = xr.DataArray(da.ones((8, 8, 4)), dims=("ky", "kx", "time"))
        >>> total, sums = array.udf.run_udf([SumUDF(), SumSigUDF()], sig_dims=("ky", "kx"))
        >>> total["intensity"].dims, sums["intensity"].dims
        (('ky', 'kx'), ('time',))
        """
        check_names(self.run_udf, options)
        data = arrange(self._variable(sig_dims), sig_dims, roi, keep_attrs)
        with own_lines_hidden:
            return running.run_udf(data, udf, rename=rename, valid_masks=valid_masks, **options)

    @overload
    def map_frames(
        self,
        func: Callable[..., Any],
        sig_dims: SigDims | None = ...,
        roi: Any = ...,
        *,
        output_names: None = ...,
        **options: Any,
    ) -> xr.DataArray: ...
    @overload
    def map_frames(
        self,
        func: Callable[..., Any],
        sig_dims: SigDims | None = ...,
        roi: Any = ...,
        *,
        output_names: Sequence[str],
        **options: Any,
    ) -> xr.Dataset: ...
    def map_frames(
        self,
        func: Callable[..., Any],
        sig_dims: SigDims | None = None,
        roi: Any = None,
        *,
        output_dims: str | Sequence[Hashable] | None = None,
        output_shape: tuple[int, ...] | None = None,
        output_dtype: Any = None,
        ragged: bool = False,
        output_names: Sequence[str] | None = None,
        backends: str | Sequence[str] | None = None,
        keep_attrs: bool | None = None,
        **kwargs: Any,
    ) -> xr.DataArray | xr.Dataset:
        """Call a function with every frame.

        Parameters
        ----------
        func : callable
            Called as ``func(frame, **kwargs)`` with each frame as an array, by default a NumPy
            array, its axes in the order of `sig_dims`, in the dtype that UDFs get (float32 or
            float64 for integers). Returns an array or scalar, always of the same shape, or None for
            a frame without a result: NaN is stored there.
        sig_dims, roi
            As in `run_udf`.
        output_dims : str or sequence of hashable, optional
            Names for the axes of the arrays that `func` returns. Dimensions of the data among them
            keep their coordinates. By default ``result_dim_0``, ``result_dim_1``, ...
        output_shape, output_dtype, ragged, output_names, backends
            As in `udfdask.map_frames`.
        keep_attrs : bool, optional
            Whether the result gets the attributes of the data. By default as set by xarray's
            option. If the option is not set either, attributes that describe values, such as
            `units`, are dropped, because the unit of the output is unknown.
        **kwargs
            As in `udfdask.map_frames`.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            Its dimensions are the navigation dimensions and the axes of the arrays that `func`
            returns. Its name is that of the data, or else that of the function. Positions outside
            the ROI have the fill value.
            With `output_names`, a Dataset with such a variable for each name.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument is invalid, one of `output_names` is the name of a dimension or
            coordinate of the data, or `output_dims` comes with `output_names`.
        UDFError
            As in `udfdask.run_udf`, or if `func` does not return an array or scalar.

        Warns
        -----
        UDFWarning
            As in `run_udf`.

        See Also
        --------
        xarray.apply_ufunc : Apply a function that broadcasts.

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask.xarray, xarray as xr
        >>> array = xr.DataArray(da.ones((2, 3, 4, 5)), dims=("y", "x", "ky", "kx"))
        >>> array.udf.map_frames(np.sum, sig_dims=("ky", "kx"), axis=0, output_dims=["kx"]).dims
        ('y', 'x', 'kx')
        """
        check_own_names(self.map_frames, func, locals())
        udf = make_frame_udf(
            self.map_frames,
            func,
            kwargs,
            output_shape=output_shape,
            output_dtype=output_dtype,
            ragged=ragged,
            output_names=output_names,
            backends=backends,
        )
        if output_names is not None and output_dims is not None:
            raise ArgumentValueError(
                "output_dims= names the dimensions of one result: leave it out, and rename "
                "dimensions of the Dataset with its rename_dims"
            )
        array = self._variable(sig_dims)
        data, named = arrange(array, sig_dims, roi, keep_attrs), {call_of(func): udf}
        if output_names is not None:
            _check_free(output_names, array)
            with own_lines_hidden:
                made = running.run_udf(data, named, rename=None, valid_masks=False)
            assert isinstance(made, dict)
            return made[call_of(func)]
        name = own_name(array)
        with own_lines_hidden:
            mapped = running.map_frames(data, named, output_dims)
        mapped = mapped.rename(name_of_map(func) if name is None else name)
        if keep_attrs is None:
            keep_attrs = xr.get_options()["keep_attrs"]
        if keep_attrs is not True:
            return mapped
        # the result has other dimensions
        return mapped.assign_attrs({k: v for k, v in array.attrs.items() if k != SIGNAL_DIMS})

    @forwards(DetectorOptions, VirtualDetectorUDF, run_udf, run_on_array)
    def virtual_image(
        self,
        detector: Any = "disk",
        sig_dims: SigDims | None = None,
        roi: Any = None,
        *,
        keep_attrs: bool | None = None,
        **options: Unpack[DetectorOptions],
    ) -> xr.DataArray:
        """Return the image of a virtual detector: the sum of its pixels in each frame.

        Parameters
        ----------
        detector : {"disk", "ring", "rect", "point", "window"}, DataArray or array of bool
            Shape of the detector, as in `udfdask.udfs.VirtualDetectorUDF`, or a mask: a DataArray
            with the signal dimensions, which is aligned by its coordinates, or an array in the
            order of `sig_dims`.
        sig_dims, roi, keep_attrs
            As in `run_udf`.
        **options
            As in `udfdask.run_udf`.

        Returns
        -------
        xarray.DataArray
            The image, with the navigation dimensions and the name of the data.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If the detector or another argument is invalid.

        Warns
        -----
        UDFWarning
            As in `run_udf`.

        See Also
        --------
        udfdask.udfs.ApplyMasksUDF : Several detectors in one pass, by name.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> data = da.ones((2, 3, 16, 16), chunks=(1, 3, 16, 16), dtype="uint16")
        >>> array = xr.DataArray(data, dims=("y", "x", "ky", "kx"))
        >>> image = array.udf.virtual_image("ring", sig_dims=("ky", "kx"), ri=4, ro=7)
        >>> image.dims, image.max().compute().item()
        (('y', 'x'), 100)
        """
        udf, run = make_detector(self.virtual_image, detector, options)
        array = self._variable(sig_dims)
        data = arrange(array, sig_dims, roi, keep_attrs)
        return running.virtual_image(data, udf, own_name(array), **run)

    @forwards(IterOptions, run_udf, iterate_on_array)
    def run_udf_iter(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        sig_dims: SigDims | None = None,
        roi: Any = None,
        *,
        rename: Mapping[str, Hashable] | None = None,
        keep_attrs: bool | None = None,
        valid_masks: bool = False,
        **options: Unpack[IterOptions],
    ) -> LabeledIterator:
        """Run UDFs and yield labeled intermediate results.

        Parameters
        ----------
        udf, sig_dims, roi, rename, keep_attrs, valid_masks
            As in `run_udf`.
        **options
            As in `udfdask.run_udf_iter`.

        Returns
        -------
        LabeledIterator
            Yields a `LabeledSnapshot` after each merged chunk.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument or a UDF's declaration is invalid.
        UDFError
            As in `udfdask.run_udf_iter`.

        Warns
        -----
        UDFWarning
            If a task needs much memory.

        See Also
        --------
        udfdask.run_udf_iter : Yield results without labels.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> from udfdask.udfs import SumUDF
        >>> data = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))
        >>> array = xr.DataArray(data, dims=("y", "x", "ky", "kx"))
        >>> for snapshot in array.udf.run_udf_iter(SumUDF(), sig_dims=("ky", "kx")):
        ...     print(snapshot.buffers[0]["intensity"].sel(ky=0, kx=0).item())
        3.0
        6.0
        """
        check_iter_options(self.run_udf_iter, options)
        data, udf, chosen = self._arranged(udf, sig_dims, roi, options, keep_attrs)
        run = prepare_run(
            data.array,
            udf,
            sig_dims=data.sig_dims,
            roi=data.roi,
            door=running.door_of(data),
            align=running.reader_of_changes(data),
            **chosen,
        )
        layouts = running.make_layouts(run.infos, data.labels, rename)
        label = partial(
            LabeledSnapshot, labels=data.labels, layouts=layouts, valid_masks=valid_masks
        )
        return LabeledIterator(run, label)

    @forwards(RunOptions, run_udf)
    def explain(
        self,
        udf: UDF | Sequence[UDF] | Mapping[str, UDF],
        sig_dims: SigDims | None = None,
        roi: Any = None,
        **options: Unpack[RunOptions],
    ) -> Explanation:
        """Describe what `run_udf` would do with the same arguments.

        Parameters
        ----------
        udf, sig_dims, roi, **options
            As in `run_udf`.

        Returns
        -------
        Explanation
            `print` shows chunks, tasks, bytes read, memory of a task, tile shape and merges.

        Raises
        ------
        UDFError
            As in `run_udf`.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> from udfdask.udfs import SumUDF
        >>> x = da.ones((64, 64, 32, 32), chunks=(8, 64, 32, 32), dtype="uint16")
        >>> array = xr.DataArray(x, dims=("y", "x", "ky", "kx"))
        >>> array.udf.explain(SumUDF(), sig_dims=("ky", "kx")).n_chunks
        8
        """
        check_names(self.explain, options)
        data, udf, chosen = self._arranged(udf, sig_dims, roi, options)
        door = running.door_of(data)
        return explain_for(door, data.array, udf, sig_dims=data.sig_dims, roi=data.roi, **chosen)


def _check_free(names: Sequence[str], array: xr.DataArray) -> None:
    """Raise if a name of a result is that of a dimension or coordinate of the data."""
    taken = {*array.dims, *array.coords}
    if used := [name for name in names if name in taken]:
        raise ArgumentValueError(
            f"output_names={tuple(names)}: {used[0]!r} is a dimension or coordinate of the data: "
            f"choose another name, such as '{used[0]}_found'"
        )


@xr.register_dataarray_accessor("udf")
class DataArrayUDF(_Runs):
    """Runs UDFs over a DataArray, as ``array.udf``, after ``import udfdask.xarray``.

    ``sig_dims=("ky", "kx")`` names the signal dimensions; all others are navigation dimensions. If
    signal dimensions are not the last ones, axes are moved, lazily.

    Results are lazy if the DataArray has chunks. Otherwise the data get chunks and are processed
    immediately, as in xarray's own functions.

    Parameters
    ----------
    array : xarray.DataArray
        The data.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumUDF
    >>> array = xr.DataArray(
    ...     da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8)),
    ...     dims=("y", "x", "ky", "kx"),
    ...     coords={"kx": ("kx", range(-4, 4), {"units": "mrad"})},
    ... )
    >>> dataset = array.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"))
    >>> dataset["intensity"].sel(kx=-2, ky=0).compute().item()
    24.0
    """

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def __repr__(self) -> str:
        name = "" if self._array.name is None else f"{self._array.name!r} "
        sizes = ", ".join(f"{dim}: {size}" for dim, size in self._array.sizes.items())
        return f"<DataArrayUDF of {name}({sizes})>"

    def _variable(self, sig_dims: SigDims | None) -> xr.DataArray:
        return self._array


@xr.register_dataset_accessor("udf")
class DatasetUDF(_Runs):
    """Runs UDFs over a variable of a Dataset, as ``dataset.udf``, after ``import udfdask.xarray``.

    The methods are those of `DataArrayUDF`. They run over the variable that fits the signal
    dimensions: it has all of them and at least one navigation dimension. If several variables fit,
    choose one, ``dataset.udf["name"]``.

    Parameters
    ----------
    dataset : xarray.Dataset
        A Dataset with the data among its variables.

    Examples
    --------
    >>> import dask.array as da, udfdask.xarray, xarray as xr
    >>> from udfdask.udfs import SumSigUDF
    >>> dataset = xr.Dataset({"scan": (("y", "x", "ky", "kx"), da.ones((2, 3, 4, 4)))})
    >>> dataset.udf.run_udf(SumSigUDF(), sig_dims=("ky", "kx"))["intensity"].shape
    (2, 3)
    >>> dataset.udf["scan"].run_udf(SumSigUDF(), sig_dims=("ky", "kx"))["intensity"].shape
    (2, 3)
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        return f"<DatasetUDF of the variables {list(self._dataset.data_vars)}>"

    def __getitem__(self, name: Hashable) -> DataArrayUDF:
        if name not in self._dataset.data_vars:
            raise ArgumentValueError(
                f"the Dataset has no variable {name!r}, only {list(self._dataset.data_vars)}"
            )
        return DataArrayUDF(self._dataset[name])

    def _variable(self, sig_dims: SigDims | None) -> xr.DataArray:
        return choose_variable(self._dataset, sig_dims)
