"""Dot products of frames with masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from numpy.typing import DTypeLike

from udfdask.arrays.geometry.axes import Axis
from udfdask.masks.stacks.container import MaskContainer
from udfdask.masks.stacks.cuda_product import DeviceMaskProduct
from udfdask.masks.stacks.dense_product import MaskProduct, check_masks, product_dtype
from udfdask.masks.stacks.sparse_product import EntryProduct
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.kernel_backends import tile_backends
from udfdask.udfs.shared.mask_shifts import as_shifts, check_axes, check_known, whole_pixels


class ApplyMasksUDF(UDF):
    """Multiply each frame with masks and add up: virtual detectors, bins, weights of a fit.

    For frame `f` and mask `m`, ``intensity[f, m] = sum(frame[y, x] * mask[y, x])``, and with shifts
    ``sum(frame[y, x] * mask[y - sy, x - sx])`` over the pixels where both are.

    Parameters
    ----------
    mask_factories : callable, or list or tuple of callables
        For each mask a callable without arguments that returns it, shape `sig`; or one callable
        that returns a whole stack, shape (n_masks, *sig). They return NumPy arrays, or sparse ones
        of SciPy or of the package `sparse`.
    use_torch : bool
        Taken for the sake of code written for LiberTEM, and ignored.
    use_sparse : bool or str, optional
        Multiply as sparse (True, or a name that `MaskContainer` takes) or dense matrices (False).
        By default as sparse ones if all masks are sparse, or are mostly 0 so that this is faster.
    mask_count : int, optional
        Number of masks; with it and `mask_dtype` masks are not computed in the plan.
    mask_dtype : dtype-like, optional
        Dtype that the masks have in the choice of the result's; by default their own. With float32
        the result of float32 data is no float64, whatever the masks are.
    preferred_dtype : dtype-like, optional
        Combined with the dtype of the data in which they are multiplied; by default theirs alone.
    backends : str or sequence of str, optional
        Array backends to use; by default "numpy", and of sparse data the sparse ones.
    shifts : tuple of int, array or AuxData, optional
        Shift of the masks in pixels, one number for each signal axis, (y, x): one for all frames,
        or an array of shape (*nav, 2), NumPy or dask, or `UDF.aux_data` of it. Fractions are cut
        off.

    Raises
    ------
    ArgumentTypeError
        If factories are no callables, a dtype is none, or `shifts` are no numbers.
    ArgumentValueError
        If there is no factory, `mask_count` is not their number, a format is not known, or
        `shifts` are not finite or of another shape.

    Notes
    -----
    Buffer `intensity`, kind nav, shape (*nav, n_masks), in the unit of the data times that of the
    masks. Its dtype is that of the product of data and masks: integers, with integer or boolean
    masks, are added up exactly in int64 or uint64, as `array.sum()` does; float16 gives float32.
    A sum that does not fit 64 bits stops the run with a `SumOverflowError`: floating masks, or
    ``preferred_dtype="float64"``, give products in double precision.

    Masks are computed once in the plan, unless `mask_dtype` and `mask_count` are given, and once
    in each other process that needs them. They must have exactly the shape of a frame; if they are
    not computed in the plan, that is checked with the first chunk.

    A pixel that is 0 in a mask is not read if masks are multiplied as sparse ones: NaN there does
    not count, while ``use_sparse=False`` makes the product NaN. Of sparse data, pixels that are not
    stored are not looked at: a mask may be infinite there. With a shift for each frame, frames are
    put together from their signal chunks.

    Examples
    --------
    >>> import functools, dask.array as da, udfdask as ud
    >>> from udfdask.masks import circular, ring
    >>> from udfdask.udfs import ApplyMasksUDF
    >>> x = da.ones((4, 6, 16, 16), dtype="uint16", chunks=(2, 6, 16, 16))
    >>> frame = {"centerX": 8, "centerY": 8, "imageSizeX": 16, "imageSizeY": 16}
    >>> detectors = [
    ...     functools.partial(circular, **frame, radius=3),
    ...     functools.partial(ring, **frame, radius=7, radius_inner=5),
    ... ]
    >>> res = ud.run_udf(x, ApplyMasksUDF(detectors))
    >>> print(res["intensity"].dtype, res["intensity"][3, 5].compute())
    uint64 [29 68]
    """

    promises = Promises(adds_signal_parts=True, declares_once=True)

    def __init__(
        self,
        mask_factories: Callable[[], Any] | Sequence[Callable[[], Any]],
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
        super().__init__(
            mask_factories=mask_factories,
            use_sparse=use_sparse,
            mask_count=mask_count,
            mask_dtype=mask_dtype,
            preferred_dtype=preferred_dtype,
            backends=backends,
            shifts=shifts,
        )
        self._container = MaskContainer(
            mask_factories, dtype=mask_dtype, use_sparse=use_sparse, count=mask_count
        )
        if isinstance(shifts, AuxData):  # each frame meets other pixels of the masks
            vars(self)["whole_frames"] = True

    def get_preferred_input_dtype(self) -> Any:
        """Return what was asked for, or that the data are wanted as they are."""
        asked = self.params.preferred_dtype
        return self.USE_NATIVE_DTYPE if asked is None else asked

    def get_backends(self) -> Any:
        """Return the array backends asked for, or that tiles may be sparse."""
        asked = self.params.backends
        if asked is not None:
            return asked
        # on the device masks are dense and tiles are not moved
        on_host = self.params.use_sparse or isinstance(self._kwargs["shifts"], AuxData)
        return tile_backends(self, ApplyMasksUDF, on_device=not on_host)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the products; computes the masks unless told their dtype and number."""
        masks, sig = self._container, self.meta.dataset_shape.sig
        check_axes(self._kwargs["shifts"], sig)
        check_known(self._kwargs["shifts"], self.meta.dataset_shape.nav, self.meta.roi)
        if self.params.mask_dtype is None or self.params.mask_count is None:
            check_masks(masks, sig, self.params.mask_dtype)
        dtype = product_dtype(self.meta.input_dtype, masks.dtype)
        return {
            "intensity": self.buffer(
                kind="nav", extra_shape=(len(masks),), dtype=dtype, where="device"
            )
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Return that the extra dimension counts masks."""
        return {"intensity": (Axis(name="mask"),)}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Compute and check the masks, and choose how to multiply."""
        check_masks(self._container, self.meta.dataset_shape.sig, self.params.mask_dtype)
        data = self.meta.input_dtype
        kind: Callable[..., MaskProduct] = MaskProduct
        if self.meta._backend.on_device:
            kind = partial(DeviceMaskProduct, self.meta._backend.dense)
        elif self.meta._backend.is_sparse:
            kind = EntryProduct
        return {"product": kind(self._container, data, product_dtype(data, self._container.dtype))}

    def process_tile(self, tile: Any) -> None:
        """Add the products with a tile."""
        product, shifts = self.task_data.product, self.params.shifts
        if shifts is None:
            product.add(tile, self.meta.sig_slice, self.results.intensity)
        elif isinstance(shifts, tuple):
            product.add_shifted(tile, self.meta.sig_slice, shifts, self.results.intensity)
        else:
            product.add_moved(tile, whole_pixels(shifts), self.results.intensity)
