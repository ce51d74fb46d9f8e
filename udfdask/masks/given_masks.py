"""Take masks as users hold them: arrays, stacks of arrays, functions, and masks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.shapes import Shape
from udfdask.masks.stack import is_sparse


@dataclass(frozen=True, slots=True, eq=False)
class GivenMask:
    """An array as a function that returns it, which is what a `MaskContainer` takes."""

    array: Any
    """A mask or a stack of masks."""

    def __call__(self) -> Any:
        """Return the array."""
        return self.array


def mask_names(given: Any, taken: str) -> tuple[str, ...] | None:
    """Return the names of masks in a dictionary; None for masks without names.

    `taken` is the name of the result, which a mask cannot have.
    """
    if not isinstance(given, Mapping):
        return None
    for name in given:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"the name of a mask must be a text such as 'BF', not {name!r}")
    if taken in given:
        raise ArgumentValueError(
            f"a mask cannot be called {taken!r}, which is the name of the result"
        )
    return tuple(given)


def factories_of(given: Any, sig: Shape | None) -> Callable[[], Any] | Sequence[Callable[[], Any]]:
    """Return masks as the functions that a `MaskContainer` takes.

    An array with the axes of a frame is one mask; with one axis more it is a stack. `sig` is the
    shape of a frame; without it, nothing is said about shapes.
    """
    if isinstance(given, (Mapping, list, tuple)):
        named = given if isinstance(given, Mapping) else dict(enumerate(given))
        return [_factory(f"mask_factories[{key!r}]", mask) for key, mask in named.items()]
    factory = _factory("mask_factories", given)
    if sig is None or not isinstance(factory, GivenMask):
        return factory
    if given.ndim == len(sig):
        return [factory]
    if given.ndim != len(sig) + 1 or not given.shape[0]:
        raise ArgumentValueError(
            f"the array of masks has the shape {tuple(given.shape)}, but frames have the shape "
            f"{tuple(sig)}: expected one mask of that shape, or a stack of shape "
            f"(n, {', '.join(map(str, sig))}), not one with no mask{_sig_dims(given, sig)}"
        )
    return factory


def _factory(what: str, mask: Any) -> Callable[[], Any]:
    """Return a mask as a function; the plan refuses those that only an accessor can read."""
    if not is_held_elsewhere(mask):
        if callable(mask):
            function: Callable[[], Any] = mask
            return function
        check_is_mask(what, mask)
    return GivenMask(mask)


def check_is_mask(what: str, mask: Any) -> None:
    """Raise unless a value is an array in memory, dense or sparse."""
    if hasattr(mask, "__dask_graph__"):
        raise ArgumentTypeError(f"{what} is a lazy dask collection: pass its .compute() instead")
    if isinstance(mask, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{what} is a masked array, whose mask would be lost: pass its .filled(0)"
        )
    if not isinstance(mask, np.ndarray) and not is_sparse(mask):
        raise ArgumentTypeError(
            f"{what} must be a mask, which is an array, or a function that returns one, not "
            f"{type(mask).__name__}: convert it with numpy.asarray"
        )
    if mask.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"{what} is an array of dtype {mask.dtype}, expected booleans or numbers"
        )


def is_held_elsewhere(mask: Any) -> bool:
    """Return whether only an accessor can read a mask: HyperSpy's ROIs and signals, DataArrays."""
    return not _packages(mask).isdisjoint(("hyperspy", "xarray"))


def _packages(mask: Any) -> set[str]:
    return {cls.__module__.partition(".")[0] for cls in type(mask).__mro__}


def check_is_read(given: Any) -> None:
    """Raise if one of the masks is of a kind that only an accessor can read."""
    masks = given.values() if isinstance(given, Mapping) else given
    if is_held_elsewhere(given) or not isinstance(given, (Mapping, list, tuple)):
        masks = [given]  # a Dataset is a mapping, too
    for mask in masks:
        if is_held_elsewhere(mask):
            is_array = "xarray" in _packages(mask)
            data, module = ("data_array", "xarray") if is_array else ("signal", "hyperspy")
            raise ArgumentTypeError(
                f"a mask that is a {type(mask).__name__} needs the axes of the data: run the UDF "
                f"with {data}.udf.run_udf(...) after import udfdask.{module}, or pass a boolean "
                "array of the shape of a frame (mask.values of a DataArray)"
            )


def _sig_dims(mask: Any, sig: Shape) -> str:
    """Return a remedy for a mask that fits the last axes of frames, but not their number."""
    shape, n = tuple(sig), len(mask.shape)
    fits = 0 < n < len(shape) and tuple(mask.shape) == shape[-n:]
    axes = f"ax{'is' if n == 1 else 'es'} (a signal: signal.transpose(signal_axes={n}))"
    return f", or pass sig_dims={n}, if frames have {n} {axes}" * fits


def detector_pixels(mask: Any, sig: Shape) -> AnyArray:
    """Return a mask as a boolean array of the shape of a frame; raise if it has weights."""
    # SciPy's todense returns a np.matrix: its toarray comes first
    dense = getattr(mask, "toarray", getattr(mask, "todense", None))
    array = np.asarray(mask if dense is None else dense())
    if array.shape != tuple(sig):
        raise ArgumentValueError(
            f"the mask of the virtual detector has the shape {array.shape}, but a frame has the "
            f"shape {tuple(sig)}: make the mask in the shape of a frame{_sig_dims(array, sig)}"
        )
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        raise ArgumentValueError(
            "the mask of the virtual detector has other values than 0 and 1, but a virtual "
            "detector has no weights: use ApplyMasksUDF(mask), or pass mask > 0"
        )
    return array.astype(bool, copy=False)
