"""The UDF under check with its data: run it, and compare results."""

from __future__ import annotations

import contextlib
import copy
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import dask.array as da
import dask.config
import numpy as np

from udfdask.errors import UDFError
from udfdask.names.naming import identity_of
from udfdask.results.result import Result
from udfdask.run.run_udf import run_udf
from udfdask.testing.assertions import Difference, Tolerance, UDFCheckError, find_difference
from udfdask.testing.eager_run import ONE_CHUNK, Chunks, EagerRun, Layout
from udfdask.testing.reference import run_reference, with_computed_params
from udfdask.types import AnyArray
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


class Place(NamedTuple):
    """A place that outlives a chunk and can keep data; `put` replaces the value."""

    identity: Any
    value: Any
    put: Callable[[Any], None] | None


def held_outside_buffers(cls: type[UDF]) -> dict[str, Place]:
    """Return what a user's class and its functions hold, by names for messages."""
    found = {}
    modules = {base.__module__ for base in cls.__mro__}
    for label, value, put in _holders(cls):
        # what other modules define is theirs
        is_ours = isinstance(value, types.FunctionType) and value.__module__ in modules
        is_code = callable(value) or isinstance(value, types.ModuleType)
        if is_code and not is_ours and not isinstance(value, staticmethod):
            continue
        kept = value
        with contextlib.suppress(Exception):  # copying a user's object can raise anything
            kept = copy.deepcopy(value)
        found[label] = Place(identity_of(value), kept, put)
    return found


def _holders(cls: type[UDF]) -> Iterator[tuple[str, Any, Callable[[Any], None] | None]]:
    """Yield label, value and setter of class attributes, closures, defaults and globals."""
    for base in (base for base in cls.__mro__ if base not in UDF.__mro__):
        for name, value in list(vars(base).items()):
            if isinstance(value, types.FunctionType):
                yield from _inside(value)
            elif not (name.startswith("__") and name.endswith("__")):
                label = f"class attribute {base.__name__}.{name}"
                yield label, value, partial(setattr, base, name)


def _inside(function: types.FunctionType) -> Iterator[tuple[str, Any, Any]]:
    """Yield label, value and setter of what a function refers to."""
    who, scope = function.__name__, function.__globals__
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # still empty
            put = partial(setattr, cell, "cell_contents")
            yield f"variable {name} outside {who}", cell.cell_contents, put
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield f"default argument of {who}", value, None
    for name in _global_names(function.__code__):
        if name in scope:
            yield f"module global {name}", scope[name], partial(scope.__setitem__, name)


def _global_names(code: types.CodeType) -> set[str]:
    """Return the global names that a code object, or one inside it, refers to."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_global_names, inner))


class Subject:
    """A UDF under check.

    `udf` is the user's instance and never changed. The first of `arrays`, each of shape
    (*nav, *sig), is for all laws, the others are for laws about dtypes.
    """

    def __init__(self, udf: UDF, arrays: Sequence[AnyArray], sig_dims: int) -> None:
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
        return self.attempt(when, EagerRun, udf or self.udf, array, self.sig_dims, layout)

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
            found = run_reference(array, self.udf, sig_dims=self.sig_dims, roi=roi)
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
    ) -> Difference | None:
        """Return the first difference between two sets of results that is more than rounding."""
        return find_difference(one, other, self._tolerance(data))

    def _tolerance(self, data: AnyArray | None = None) -> Tolerance:
        """Return the allowed difference of floats in results of some data."""
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
