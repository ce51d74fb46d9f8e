"""Multiply each frame with a stack of masks, which can be shifted for each frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.shapes import Shape
from udfdask.masks.container import MaskContainer
from udfdask.masks.dense_product import (
    MaskProduct,
    as_added_up,
    check_masks,
    heaviest,
    highest,
    product_dtype,
    signed_if_fits,
)
from udfdask.masks.given_masks import factories_of, mask_names
from udfdask.masks.sparse_product import DeviceMaskProduct, EntryProduct
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import ALL_TILES, DENSE_TILES, BuiltInUDF
from udfdask.udfs.shared.geometry_parameters import as_vectors


def as_shifts(given: Any) -> Any:
    """Return shifts as a tuple of whole pixels, one per signal axis, or as aux data or lazy."""
    read = None if given is None else as_vectors("shifts", given, "raw_shifts")
    if read is None or isinstance(read, AuxData) or is_lazy(read):
        return read
    if not read.size:
        raise ArgumentTypeError("shifts must be a pair (y, x), but it is empty")
    return tuple(whole_pixels(np.atleast_2d(read))[0].tolist())


def check_shifts(shifts: Any, shape: Shape, roi: AnyArray | None) -> None:
    """Raise unless shifts have a number for each signal axis, and are finite in the ROI."""
    if shifts is None:
        return
    is_aux, sig = isinstance(shifts, AuxData), shape.sig
    axes = shifts.extra_shape[0] if is_aux else math.prod(np.shape(shifts))
    if axes != len(sig):
        raise ArgumentValueError(
            f"shifts have {axes} numbers each, but a frame of shape {tuple(sig)} has {len(sig)}"
        )
    # the plan refuses another size; lazy values are checked later
    known = None if not is_aux or shifts.is_lazy else shifts.data
    if known is not None and known.size == shape.nav.size * axes:
        rows = np.reshape(known, (-1, axes))
        whole_pixels(rows if roi is None else rows[roi.reshape(-1)])


def whole_pixels(shifts: AnyArray) -> AnyArray:
    """Cut shifts, shape (n, sig dims), to whole pixels, int64."""
    if shifts.dtype.kind == "f":
        wrong = ~np.isfinite(shifts).all(axis=1)
        if wrong.any():
            raise ArgumentValueError(
                f"shifts must be finite, in pixels, not {tuple(shifts[wrong][0].tolist())}: use 0, "
                "or exclude these frames with roi="
            )
    far = 1 << 40  # outside any frame, and in the range of int64
    return np.clip(shifts, -far if shifts.dtype.kind != "u" else 0, far).astype(np.int64)


_RESULT = "intensity"
"""Name of the result."""


class ApplyMasksUDF(BuiltInUDF):
    """Multiply each frame with masks and sum: virtual detectors, bins, weights of a fit.

    For frame `f` and mask `m`, ``intensity[f, m] = sum(frame[y, x] * mask[y, x])``. With shifts it
    is ``sum(frame[y, x] * mask[y - sy, x - sx])`` over the pixels where both exist.

    Parameters
    ----------
    mask_factories : array or callable, or list, tuple or dict of them
        The masks: arrays of NumPy, SciPy or the package `sparse`, or functions without arguments
        that return them. One array is a mask, shape `sig`, or a stack, shape (n_masks, *sig); one
        function returns a stack. A list or tuple has one array or function for each mask; a
        dictionary has names as well: ``{"BF": disk, "ADF": ring}``. The accessors of DataArrays and
        signals also take DataArrays, signals and ROIs of HyperSpy.
    use_torch : bool
        Ignored; accepted for code that was written for LiberTEM.
    use_sparse : bool or str, optional
        Whether masks are sparse matrices (True, or a format of `MaskContainer`) or dense ones
        (False); by default what is faster.
    mask_count : int, optional
        Number of masks. With `mask_count` and `mask_dtype`, the plan does not compute the masks.
    mask_dtype : dtype-like, optional
        Dtype of the masks, from which that of the result follows; by default their own.
    preferred_dtype : dtype-like, optional
        Dtype that is combined with that of the data, which by default is kept.
    backends : str or sequence of str, optional
        Array backends to use; by default "numpy", and sparse formats for sparse data.
    shifts : tuple of int, array or AuxData, optional
        Shift of the masks in pixels, (y, x): one for all frames, or an array of shape (*nav, 2),
        NumPy or dask. Fractions are cut off.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a mask is neither an array in memory nor a function, `mask_count` is not their number,
        another parameter is wrong, or `shifts` are not finite numbers of the right shape.

    Notes
    -----
    Buffer `intensity`, kind nav, shape (*nav, n_masks), in the unit of the data times the unit of
    the masks. If the masks have names, they are the labels of its axis `mask`, and
    ``result["BF"]`` is the image of one mask, shape `nav`.

    The dtype is that of the product of data and masks. Integer data with integer or boolean masks
    are added up exactly in int64, or in uint64 if data and masks are unsigned and a sum could
    exceed 2**62; float16 gives float32. A sum that does not fit 64 bits stops the run with a
    `SumOverflowError`: ``preferred_dtype="float64"`` gives products in double precision.

    Functions are called once in each process, and in the plan unless `mask_dtype` and `mask_count`
    are given. Sparse masks do not read pixels where a mask is 0: NaN there has no effect, but with
    ``use_sparse=False`` it makes the product NaN. If each frame has its own shift, frames are
    assembled from their signal chunks.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import ApplyMasksUDF
    >>> x = da.ones((4, 6, 16, 16), dtype="uint16", chunks=(2, 6, 16, 16))
    >>> stripe = np.zeros((16, 16), bool)
    >>> stripe[:, 4:6] = True
    >>> res = ud.run_udf(x, ApplyMasksUDF({"stripe": stripe, "rest": ~stripe}))
    >>> print(res["stripe"][3, 5].compute(), res["intensity"][3, 5].compute())
    32 [ 32 224]
    """

    promises = Promises(
        adds_signal_parts=True, declares_once=True, takes_any_byte_order=True, streams_tiles=True
    )

    _kernels = ALL_TILES
    _mask_parameter = "mask_factories"

    def __init__(
        self,
        mask_factories: Callable[[], Any] | AnyArray | Sequence[Any] | Mapping[str, Any],
        *,
        use_torch: bool = False,
        use_sparse: bool | str | None = None,
        mask_count: int | None = None,
        mask_dtype: DTypeLike | None = None,
        preferred_dtype: DTypeLike | None = None,
        backends: str | Sequence[str] | None = None,
        shifts: Any = None,
    ) -> None:
        shifts = as_shifts(shifts)
        counts = {"use_sparse": use_sparse, "mask_count": mask_count, "mask_dtype": mask_dtype}
        kinds = {"preferred_dtype": preferred_dtype, "backends": backends}
        super().__init__(mask_factories=mask_factories, **counts, **kinds, shifts=shifts)
        self._names = mask_names(mask_factories, _RESULT)
        self._make_container(None)  # raises if an argument is invalid
        if isinstance(shifts, AuxData):  # each frame is multiplied with other pixels of the masks
            vars(self)["whole_frames"] = True

    def get_preferred_input_dtype(self) -> Any:
        preferred = self.params.preferred_dtype
        return self.USE_NATIVE_DTYPE if preferred is None else preferred

    def get_backends(self) -> Any:
        chosen = self.params.backends
        return super().get_backends() if chosen is None else chosen

    def _has_kernel(self, backend: str) -> bool:
        """Return whether there is a kernel: on the device for dense masks with one shift only."""
        on_host = self.params.use_sparse or isinstance(self._kwargs["shifts"], AuxData)
        return not (on_host and backend in DENSE_TILES)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the products; compute the masks if their dtype or number is unknown."""
        masks, shape = self._masks, self.meta.dataset_shape
        check_shifts(self._kwargs["shifts"], shape, self.meta.roi)
        is_unknown = self.params.mask_dtype is None or self.params.mask_count is None
        if is_unknown:
            check_masks(masks, shape.sig, self.params.mask_dtype)
        dtype = product_dtype(self.meta.input_dtype, masks.dtype)
        if dtype == np.uint64:
            # the sum of the weights of a mask, or its limit if the plan knows only a dtype
            weight = heaviest(masks) if is_unknown else shape.sig.size * highest(masks.dtype)
            dtype = signed_if_fits(dtype, self.meta.input_dtype, weight)
        return {_RESULT: self.buffer("nav", (len(masks),), dtype, where="device")}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        return {_RESULT: (Axis(name="mask", labels=self._names),)}

    def get_detector_masks(self) -> Mapping[str, AnyArray]:
        sig = self.meta.dataset_shape.sig
        check_masks(self._masks, sig, self.params.mask_dtype)
        computed = self._masks.computed_masks
        dense = computed.todense() if hasattr(computed, "todense") else computed
        names = self._names or [f"mask {k}" for k in range(len(dense))]
        return dict(zip(names, dense != 0, strict=True))

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Compute and check the masks, and choose the algorithm of the multiplication."""
        check_masks(self._masks, self.meta.dataset_shape.sig, self.params.mask_dtype)
        data = self.meta.input_dtype
        kind: Callable[..., MaskProduct] = MaskProduct
        if self.meta._backend.on_device:
            kind = partial(DeviceMaskProduct, self.meta._backend.dense)
        elif self.meta._backend.is_sparse:
            kind = EntryProduct
        return {"product": kind(self._masks, data, product_dtype(data, self._masks.dtype))}

    def process_tile(self, tile: Any) -> None:
        product, shifts = self.task_data.product, self.params.shifts
        out = as_added_up(self.results.intensity, product.dtype)
        if shifts is None:
            product.add(tile, self.meta.sig_slice, out)
        elif isinstance(shifts, tuple):
            product.add_shifted(tile, self.meta.sig_slice, shifts, out)
        else:
            product.add_moved(tile, whole_pixels(shifts), out)

    @cached_property
    def _masks(self) -> MaskContainer:
        """The masks, once the shape of a frame is known: it says whether an array is a stack."""
        return self._make_container(self.meta.dataset_shape.sig)

    def _make_container(self, sig: Shape | None) -> MaskContainer:
        given = self._kwargs
        return MaskContainer(
            factories_of(given["mask_factories"], sig),
            dtype=given["mask_dtype"],
            use_sparse=given["use_sparse"],
            count=given["mask_count"],
        )
