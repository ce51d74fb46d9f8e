"""The UDF under check with its data: run it, and compare results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import dask.array as da
import dask.config
import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import UDFError
from udfdask.geometry.axes import Calibration
from udfdask.results.result import Result
from udfdask.run.run_udf import run_udf
from udfdask.testing.assertions import Difference, Tolerance, UDFCheckError, find_difference
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, EagerRun, Layout
from udfdask.testing.mutable_state import held_outside_buffers
from udfdask.testing.reference import run_reference, with_computed_params
from udfdask.udf import UDF

T = TypeVar("T")

NAV = (4, 6)
SIGS = {1: (16,), 2: (6, 8), 3: (3, 4, 5)}
DTYPES = ("int16", "float32", "uint16", ">u2", "int32", "uint8", "float64", ">f4")
"""Dtypes of the default arrays. All laws are checked on the first, a few laws on all."""


def default_arrays(sig_dims: int) -> list[AnyArray]:
    """Return small arrays of several dtypes and a scan of 4 by 6 positions.

    They contain whole numbers, because their sums are exact in any precision: positive ones,
    zeros, and negative ones if the dtype has them.
    """
    rng = np.random.default_rng(20)
    signed = rng.integers(-30, 60, size=(*NAV, *SIGS.get(sig_dims, (2,) * sig_dims)))
    signed[rng.random(signed.shape) < 0.2] = 0
    kinds = map(np.dtype, DTYPES)
    return [(abs(signed) if kind.kind == "u" else signed).astype(kind) for kind in kinds]


def scan_chunkings(nav: tuple[int, ...]) -> Iterator[Chunks]:
    """Yield ways to chunk a scan: halves, ragged chunks and single frames, in one axis or all."""
    uncut = tuple((n,) for n in nav)
    for axis, n in enumerate(nav):
        for cut in dict.fromkeys(((1, n - 1), (n - 1, 1), (n - n // 2, n // 2), (1,) * n)):
            if n > 1:
                yield (*uncut[:axis], cut, *uncut[axis + 1 :])
    if sum(n > 1 for n in nav) > 1:
        yield tuple((n - n // 2, n // 2) if n > 1 else (n,) for n in nav)
        yield tuple((1, n - 1) if n > 1 else (n,) for n in nav)


def regions(nav: tuple[int, ...]) -> list[tuple[str, AnyArray]]:
    """Return regions of interest, each with a name for messages."""
    size = math.prod(nav)
    number = np.arange(size).reshape(nav)
    named = [
        ("every third frame", number % 3 == 1),
        ("a single frame", number == size // 2 + 1),
        ("no frame of the first chunk", number >= (size + 1) // 2),
        ("no frame", np.zeros(nav, dtype=bool)),
    ]
    return [(name, roi) for name, roi in named if nav and (roi.any() or name == "no frame")]


class Subject:
    """A UDF under check.

    `udf` is the user's instance and never changed. The first of `arrays`, each of shape
    (*nav, *sig), is for all laws, the others are for laws about dtypes.
    """

    def __init__(
        self,
        udf: UDF,
        arrays: Sequence[AnyArray],
        sig_dims: int,
        calibration: Calibration | None = None,
    ) -> None:
        self.calibration = calibration
        self.original = udf
        self.arrays = arrays
        self.data = arrays[0]
        self.sig_dims = sig_dims
        self.nav = self.data.shape[: self.data.ndim - sig_dims]
        self.sig = self.data.shape[self.data.ndim - sig_dims :]
        self.frame_bytes = math.prod(self.sig) * self.data.dtype.itemsize
        self.two_chunks: Chunks | None = next(scan_chunkings(self.nav), None)
        # ragged, two along each axis of more than one pixel
        cuts = [(n // 3 or 1, n) for n in self.sig]
        self.sig_chunks = tuple((cut, n - cut) if n > 1 else (n,) for cut, n in cuts)
        self.notes: list[str] = []
        self.before = held_outside_buffers(type(udf))
        """What the class and its functions hold before the first run."""
        self._references: dict[Any, tuple[AnyArray, dict[str, AnyArray]]] = {}

    @cached_property
    def udf(self) -> UDF:
        """The UDF with computed parameters."""
        return with_computed_params(self.original)

    def run(
        self, layout: Layout = ONE_CHUNK, *, data: AnyArray | None = None, udf: UDF | None = None
    ) -> EagerRun:
        """Return a run without dask, of this UDF or of the variant `udf`."""
        array = self.data if data is None else data
        when = f"with {layout}"
        how = self.sig_dims, layout, self.calibration
        return self.attempt(when, EagerRun, udf or self.udf, array, *how)

    def results(self, layout: Layout = ONE_CHUNK, **options: Any) -> dict[str, AnyArray]:
        """Return the results of a run without dask; nav results have the rows of the ROI."""
        return self.attempt(f"with {layout}", self.run(layout, **options).results)

    def run_with_dask(
        self, layout: Layout, udfs: Sequence[UDF], data: AnyArray | None = None, **options: Any
    ) -> tuple[Result, ...]:
        """Return the lazy results of a run with dask."""
        nav = layout.nav_chunks or (-1,) * len(self.nav)
        sig = layout.sig_chunks or (-1,) * len(self.sig)
        array = da.from_array(self.data if data is None else data, chunks=(*nav, *sig))
        options |= {"sig_dims": self.sig_dims, "roi": layout.roi}
        if self.calibration is not None:
            options |= {"axes": self.calibration.axes, "voltage": self.calibration.voltage}
        with dask.config.set({"udfdask.tile-bytes": layout.tile_bytes}):
            return self.attempt(f"with {layout}", run_udf, array, list(udfs), **options)

    def attempt(self, when: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function; convert its exceptions to UDFCheckError, because the UDF caused them."""
        try:
            return function(*args, **kwargs)
        except UDFCheckError:
            raise
        except Exception as error:  # a user's method may raise anything
            raise UDFCheckError(f"{when}: {in_words(error)}") from error

    def reference(
        self, data: AnyArray | None = None, roi: AnyArray | None = None
    ) -> dict[str, AnyArray]:
        """Return the results of `run_reference`, in the shape of the dataset."""
        array = self.data if data is None else data
        key = (id(array), None if roi is None else roi.tobytes())
        if key not in self._references:
            how: dict[str, Any] = {"sig_dims": self.sig_dims, "calibration": self.calibration}
            found = run_reference(array, self.udf, roi=roi, **how)
            self._references[key] = (array, found)
        return self._references[key][1]

    def error_with(self, data: AnyArray, roi: AnyArray | None = None) -> Exception | None:
        """Return the exception of `run_reference` with some data; None if there is none."""
        try:
            self.reference(data, roi)
        except Exception as error:  # noqa: BLE001  # a user's method may raise anything
            return error
        return None

    def usable_arrays(self) -> list[AnyArray]:
        """Return the arrays that the UDF accepts."""
        return [data for data in self.arrays if self.error_with(data) is None]

    def matches(self, layout: Layout, text: str, data: AnyArray | None = None) -> None:
        """Fail with a text if a run without dask differs from a plain loop over all frames."""
        run = self.run(layout, data=data)
        results = self.attempt(f"with {layout}", run.results)
        chosen = np.ones(self.nav, dtype=bool) if layout.roi is None else layout.roi
        outputs, expected = run.declared.outputs, {}
        for name, array in self.reference(data, layout.roi).items():
            rows = array[chosen] if outputs[name].kind == "nav" else array
            expected[name] = rows.reshape((1,)) if rows.ndim == 0 else rows
        self.agree({k: results[k] for k in outputs}, expected, text, data, layout=layout)

    def agree(
        self,
        one: Mapping[str, AnyArray],
        other: Mapping[str, AnyArray],
        text: str,
        data: AnyArray | None = None,
        **more: Any,
    ) -> None:
        """Fail if two sets of results differ; the text may ask for parts of their difference."""
        if found := self.difference(one, other, data):
            is_float = one.get(found.name, self.data).dtype.kind in "fc"
            hint = ""
            if is_float and self._tolerance(data).data:
                hint = "; if that is rounding, a wider dtype of the buffers helps"
            raise UDFCheckError(text.format(**found._asdict(), **more) + hint)

    def difference(
        self,
        one: Mapping[str, AnyArray],
        other: Mapping[str, AnyArray],
        data: AnyArray | None = None,
        *,
        check_dtype: bool = True,
    ) -> Difference | None:
        """Return the first difference between two sets of results that is more than rounding."""
        return find_difference(one, other, self._tolerance(data), check_dtype=check_dtype)

    def _tolerance(self, data: AnyArray | None = None) -> Tolerance:
        data = self.data if data is None else data
        dtype = np.result_type(data.dtype, np.dtype(self.udf.get_preferred_input_dtype()))
        if dtype.kind not in "fc":
            return Tolerance()
        is_exact = np.array_equal(data, np.round(data))
        largest = 0.0 if is_exact else float(np.abs(data[np.isfinite(data)]).max(initial=0))
        return Tolerance(eps=float(np.finfo(dtype).eps), data=largest)


def varied(udf: UDF, **attributes: Any) -> UDF:
    """Return an instance of a subclass with some other attributes.

    Like every subclass, it does not inherit promises: it makes only those in `attributes`.
    """
    cls = type(udf)
    variant: type[UDF] = type(cls.__name__, (cls,), {**attributes, "__module__": cls.__module__})
    return variant(**udf._kwargs)


def in_words(error: Exception) -> str:
    """Return the message for an exception that a run of a UDF raised."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    text = str(error) if isinstance(error, UDFError) else f"{type(error).__name__}: {error}"
    return f"{text} ({notes})" if notes else text
