"""The accessor `udf` of DataArrays: arrange the data, run, label."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import xarray as xr

from udfdask.errors import ArgumentValueError
from udfdask.explanation.describe import Explanation
from udfdask.io.labeled_array import SIGNAL_DIMS, own_name
from udfdask.run.map_frames import MapOptions, call_of, make_frame_udf, name_of_map
from udfdask.run.map_frames import map_frames as map_on_array
from udfdask.run.options import (
    IMAGE,
    DetectorOptions,
    IterOptions,
    RunOptions,
    check_names,
    forwards,
    make_detector,
)
from udfdask.run.progressive.start import prepare_run
from udfdask.run.progressive.start import run_udf_iter as iterate_on_array
from udfdask.run.run_udf import explain_for, in_form_of
from udfdask.run.run_udf import run_udf as run_on_array
from udfdask.scheduling.job import check_options
from udfdask.tracebacks import own_lines_hidden
from udfdask.udf import UDF
from udfdask.udfs.virtual_detector import VirtualDetectorUDF
from udfdask.xarray import run as running
from udfdask.xarray.from_dataarray import Arranged, arrange, name_dims
from udfdask.xarray.progressive import LabeledIterator, LabeledSnapshot

SigDims = int | str | Sequence[Hashable]
"""Names of the signal dimensions, or their number if they are the last dimensions."""

_UNNAMED = "__udfdask_result__"
"""Temporary name of a variable, which no dimension has."""


@xr.register_dataarray_accessor("udf")
class DataArrayUDF:
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

    def _arranged(
        self,
        udf: Any,
        sig_dims: SigDims | None,
        roi: Any,
        options: Mapping[str, Any],
        keep_attrs: bool | None = None,
    ) -> tuple[Arranged, Any, dict[str, Any]]:
        """Return the data of a run, its UDFs, and its options, aligned with the data."""
        data = arrange(self._array, sig_dims, roi, keep_attrs)
        udf, chosen = running.read_arguments(data, udf, options)
        return data, udf, {"sig_dims": data.sig_dims, "roi": data.roi, **chosen}

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
    ) -> Any:
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
        descan : Descan, xarray.DataArray or array-like, optional
            As in `udfdask.run_udf`; a DataArray is aligned by its coordinates, and repeated along
            navigation dimensions that it does not have.
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
            If an argument or a UDF's declaration is invalid: a dimension is unknown, the ROI cannot
            be aligned, or a result has the name of a dimension.
        UDFError
            As in `udfdask.run_udf`.

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
        data = arrange(self._array, sig_dims, roi, keep_attrs)
        how: dict[str, Any] = {"rename": rename, "valid_masks": valid_masks, **options}
        with own_lines_hidden:
            return in_form_of(udf, running.run(data, udf, **how))

    @forwards(MapOptions, map_on_array)
    def map_frames(
        self,
        func: Callable[..., Any],
        sig_dims: SigDims | None = None,
        roi: Any = None,
        *,
        output_dims: str | Sequence[Hashable] | None = None,
        keep_attrs: bool | None = None,
        **kwargs: Any,
    ) -> xr.DataArray | xr.Dataset:
        """Call a function with every frame.

        Parameters
        ----------
        func : callable
            Called as ``func(frame, **kwargs)``, as in `udfdask.map_frames`; the axes of a frame are
            in the order of `sig_dims`.
        sig_dims, roi
            As in `run_udf`.
        output_dims : str or sequence of hashable, optional
            Names for the axes of the arrays that `func` returns. Dimensions of the data among them
            keep their coordinates. By default ``result_dim_0``, ``result_dim_1``, ...
        keep_attrs : bool, optional
            Whether the result gets the attributes of the data. By default as set by xarray's
            option. If the option is not set either, attributes that describe values, such as
            `units`, are dropped, because the unit of the output is unknown.
        output_shape, output_dtype, ragged, output_names, backends, **kwargs
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

        Examples
        --------
        >>> import dask.array as da, numpy as np, udfdask.xarray, xarray as xr
        >>> array = xr.DataArray(da.ones((2, 3, 4, 5)), dims=("y", "x", "ky", "kx"))
        >>> array.udf.map_frames(np.sum, sig_dims=("ky", "kx"), axis=0, output_dims=["kx"]).dims
        ('y', 'x', 'kx')
        """
        udf = make_frame_udf(self.map_frames, func, locals(), kwargs)
        array, output_names = self._array, kwargs.get("output_names")
        if output_names is not None:
            if output_dims is not None:
                raise ArgumentValueError(
                    "output_dims= names the dimensions of one result: leave it out, and rename "
                    "dimensions of the Dataset with its rename_dims"
                )
            running.check_free(output_names, array)
        data, named = arrange(array, sig_dims, roi, keep_attrs), {call_of(func): udf}
        rename = None if output_names is not None else {"result": _UNNAMED}
        with own_lines_hidden:
            (dataset,) = running.run(data, named, rename=rename)
        if output_names is not None:
            return dataset
        name = own_name(array)
        mapped = dataset[_UNNAMED].rename(name_of_map(func) if name is None else name)
        if output_dims is not None:
            mapped = name_dims(mapped, output_dims, data.labels)
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
        sig_dims, roi, keep_attrs, **options
            As in `run_udf`.

        Returns
        -------
        xarray.DataArray
            The image, with the navigation dimensions and the name of the data.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If the detector or another argument is invalid.

        Examples
        --------
        >>> import dask.array as da, udfdask.xarray, xarray as xr
        >>> data = da.ones((2, 3, 16, 16), chunks=(1, 3, 16, 16), dtype="uint16")
        >>> array = xr.DataArray(data, dims=("y", "x", "ky", "kx"))
        >>> image = array.udf.virtual_image("ring", sig_dims=("ky", "kx"), ri=4, ro=7)
        >>> image.dims, image.max().compute().item()
        (('y', 'x'), 100)
        """
        udf, chosen = make_detector(self.virtual_image, detector, options)
        data = arrange(self._array, sig_dims, roi, keep_attrs)
        (dataset,) = running.run(data, udf, rename={IMAGE: _UNNAMED}, **chosen)
        notes = {key: text for key, text in dataset.attrs.items() if key == "note"}
        return dataset[_UNNAMED].rename(own_name(self._array)).assign_attrs(notes)

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
        UDFError
            As in `run_udf`.

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
        check_options(self.run_udf_iter, options, options.get("scheduler"))
        data, udf, chosen = self._arranged(udf, sig_dims, roi, options, keep_attrs)
        align = running.reader_of_changes(data)
        run = prepare_run(data.array, udf, door=running.door_of(data), align=align, **chosen)
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
            As of `udfdask.explain`.

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
        return explain_for(running.door_of(data), data.array, udf, **chosen)
