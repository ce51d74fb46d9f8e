"""The base class of built-in UDFs: their dtype, and the array types of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from udfdask.backends.backend import CUPY
from udfdask.backends.sparse_types import COO, GCXS, SCIPY_CSR, SCIPY_CSR_ARRAY
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.promises import Promises

DENSE_TILES = (CUPY.name,)
"""Dense tiles on a device, for `kernels.cuda`."""

ALL_TILES = (*DENSE_TILES, GCXS.name, SCIPY_CSR.name, SCIPY_CSR_ARRAY.name, COO.name)
"""Sparse tiles as well, which `kernels.cpu.sparse_sums` reads without a conversion."""


SUMS = Promises(
    adds_signal_parts=True,
    declares_once=True,
    starts_no_threads=True,
    streams_tiles=True,
    takes_any_byte_order=True,
)
"""Promises of UDFs whose kernels add pixels up, in any order of their bytes."""


class BuiltInUDF(UDF):
    """A UDF that takes data in their own dtype, in all array types for which it has kernels."""

    _kernels: ClassVar[tuple[str, ...]] = ()
    """Array types that `process_tile` of the class takes besides NumPy arrays."""

    def get_preferred_input_dtype(self) -> Any:
        """Use the native dtype."""
        return self.USE_NATIVE_DTYPE

    def get_backends(self) -> Any:
        """Accept NumPy arrays, and others if the `process_tile` that has kernels for them runs."""
        host = (self.BACKEND_NUMPY,)
        if "meta" in vars(self):  # before, each dtype counts as accepted
            dtype = self.meta.input_dtype
            if dtype.kind not in "biufc" or dtype.char in "gG":
                return host
        own = next(cls for cls in type(self).__mro__ if "_kernels" in vars(cls))
        runs: object = getattr(getattr(self, "process_tile", None), "__func__", None)
        if self.get_method() is not UDFMethod.TILE or runs is not vars(own).get("process_tile"):
            return host
        return host + tuple(name for name in self._kernels if self._has_kernel(name))

    def _has_kernel(self, backend: str) -> bool:
        """Return whether there is a kernel for the parameters."""
        return True

    def _frame_shape(self, kinds: str = "biuf") -> tuple[int, int]:
        """Return the height and width of frames; raise unless they are 2-D and of these dtypes."""
        sig, name = tuple(self.meta.dataset_shape.sig), type(self).__name__
        if len(sig) != 2:
            raise ArgumentValueError(
                f"{name} works on 2-D frames, but the signal has the shape {sig}: pass sig_dims=2 "
                "(a signal: signal.transpose(signal_axes=2)), or make y and x the last two axes"
            )
        if 0 in sig:
            raise ArgumentValueError(f"{name} works on pixels, but frames have the shape {sig}")
        dtype = self.meta.input_dtype
        if dtype.kind not in kinds:
            numbers, remedy = "real numbers", "take their real part or absolute value first"
            if "c" in kinds:
                numbers, remedy = "numbers", "convert them first, with .astype(...)"
            raise ArgumentTypeError(
                f"{name} works on {numbers}, but the data have dtype {dtype}: {remedy}"
            )
        return sig

    def _count_frames(self) -> int:
        """Return the number of frames in the region of interest."""
        roi = self.meta.roi
        return self.meta.dataset_shape.nav.size if roi is None else int(np.count_nonzero(roi))


def check_scan(udf: UDF, least: int = 2) -> None:
    """Raise if the scan of a run is not 2-D, or too small along an axis."""
    nav = tuple(udf.meta.dataset_shape.nav)
    if len(nav) != 2 or min(nav) < least:
        raise ArgumentValueError(
            f"{type(udf).__name__} needs a 2-D scan with at least {least} positions along each "
            f"axis, but the scan has the shape {nav}"
        )


def check_flag(name: str, value: Any) -> bool:
    """Return a bool; raise if a parameter is not one. The value of a lazy one is an array."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def check_choice(name: str, value: Any, choices: Sequence[str | None]) -> None:
    """Raise if a parameter is not one of some words."""
    if value not in choices:
        raise ArgumentValueError(
            f"{name} must be one of {', '.join(map(str, choices))}, not {value!r}"
        )
