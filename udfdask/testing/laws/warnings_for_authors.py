"""Find likely mistakes that break no law: untested merges, ignored methods, and more."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from udfdask.errors import UDFError
from udfdask.testing.differences import Tolerance, differing
from udfdask.testing.eager_run import EagerRun, Layout
from udfdask.testing.failures import UDFCheckError
from udfdask.testing.sample_data import scan_chunkings
from udfdask.testing.udf_under_test import Subject, varied
from udfdask.types import AnyArray
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.written_methods import (
    OPTIONAL,
    functions_of,
    misspelled_methods,
    names_in_methods,
    visible_methods,
)

SHIFT = 20
"""Number that is added to the data to tell a maximum from a count."""


def warnings_for_authors(subject: Subject) -> list[str]:
    """Return notes about likely mistakes that no law finds."""
    notes = static_warnings(subject)
    for find in (_returned, _never_filled, _kept_on_self, _starts_at_zero, _too_small_integers):
        # its law was skipped, or the UDF rejects the data of this search
        with suppress(UDFCheckError):
            notes += find(subject)
    return notes


def static_warnings(subject: Subject) -> list[str]:
    """Return notes about what the methods are called and read; nothing runs."""
    udf = subject.original
    notes = misspelled_methods(udf)
    with suppress(UDFError):  # it has no processing method
        notes += _ignored_methods(udf)
        if (
            udf.get_method() is UDFMethod.NEIGHBORHOOD
            and udf.boundary == "mask"
            and "process_neighborhood" in vars(type(udf))
            and "neighbor_mask" not in names_in_methods(udf)
        ):
            notes.append(
                "process_neighborhood does not read self.meta.neighbor_mask: frames beyond the "
                "ends of the scan are 0 there, so a mean over all frames is too small. If you need "
                "a mean, leave them out, or set boundary = 'nearest'"
            )
    return notes


def _ignored_methods(udf: UDF) -> list[str]:
    """Return notes about processing methods of the user that another one replaces."""
    if type(udf).get_method is not UDF.get_method:
        return []  # the UDF chooses
    used = f"process_{udf.get_method().value}"
    owner = next((cls for cls in type(udf).__mro__ if used in vars(cls)), type(udf))
    called = names_in_methods(udf)
    return [
        f"{cls.__name__} defines {name}, but {used} is used"
        for name, cls in visible_methods(udf).items()
        if name in OPTIONAL
        and name.startswith("process_")
        and name not in called | {used}
        and (udf.halo is not None or (cls is not owner and issubclass(cls, owner)))
    ]


def _returned(subject: Subject) -> list[str]:
    """Return a note about a processing method that returns a value, which nobody uses."""
    method = f"process_{subject.udf.get_method().value}"
    process: Any = getattr(type(subject.udf), method)
    if method not in visible_methods(subject.udf):
        return []
    returned: list[str] = []

    def call(udf: UDF, data: Any) -> None:
        value = process(udf, data)
        if value is not None:
            returned.append(type(value).__name__)

    subject.run(udf=varied(subject.udf, **{method: call}))
    return [
        f"{method} returns a value of type {kind}, which is not used: assign it to a buffer, such "
        "as self.results.name[:] = value"
        for kind in returned[:1]
    ]


def _kept_on_self(subject: Subject) -> list[str]:
    """Return notes about lists that grow while data are processed, and that no method reads."""
    if not visible_methods(subject.original):
        return []
    before = {"__init__", "preprocess", f"process_{subject.udf.get_method().value}"}
    read = {
        name
        for _, method, function in functions_of(subject.udf)
        if method not in before
        for name in function.__code__.co_names
    }
    return [
        f"self.{name} grows while data are processed, but each chunk has an instance of its own, "
        "and after the run, your instance is as before. Keep what you need in a buffer (with "
        "dtype=object, it can be a list)"
        for name, value in subject.attributes_set().items()
        if isinstance(value, list) and value and name not in read
    ]


def _never_filled(subject: Subject) -> list[str]:
    """Return a note about buffers that keep their fresh value in all runs of the data."""
    run = subject.run()
    names = set(run.declared.allocated if run.partials else ()) - _filled(run)
    if run.declared.cls.get_result_buffers.__module__.startswith("udfdask."):
        # StdDevUDF needs `origin` only for data that are no integers
        names -= {name for name, spec in run.declared.allocated.items() if spec.use == "private"}
    for nav_chunks in scan_chunkings(subject.nav):
        if names:
            names -= _filled(subject.run(Layout(nav_chunks=nav_chunks)))
    merged = run.declared.merge.mode != "none"
    return [
        f"buffer {name!r} never left its fresh value"
        + (", so its merge is not tested: " if merged else ": assign it in a method, or ")
        + "pass data for which it changes"
        for name in run.declared.allocated
        if name in names
    ]


def _filled(run: EagerRun) -> set[str]:
    """Return the names of the buffers that differ from fresh ones in some chunk or its merge."""
    names: set[str] = set()
    for partial in run.partials:
        fresh = run.fresh_buffers(partial)
        for name, array in partial.arrays.items():
            if not array.size or differing(array, fresh[name], Tolerance()).any():
                names.add(name)
    return names


def _starts_at_zero(subject: Subject) -> list[str]:
    """Return notes about a maximum of negative data, or a minimum of positive data, that is 0.

    Such a buffer has only values of the data, and rises with them, for data of the other sign. So
    counts and sums of the positive part are no false alarm.
    """
    data = subject.data
    if data.dtype.kind not in "if" or not data.size:
        return []
    numbers = np.random.default_rng(21).integers(1, 40, size=data.shape)

    def run_of(values: Any) -> EagerRun:
        return subject.run(data=values.astype(data.dtype))

    notes = []
    for word, sign in (("negative", -1), ("positive", 1)):
        if not (sign * data > 0).any():
            continue  # the user's data have only the other sign
        run = run_of(sign * numbers)
        held, fresh = run.partials[0].arrays, run.fresh_buffers()
        stuck = [k for k, array in held.items() if _is_zero(array) and _is_zero(fresh[k])]
        if not stuck:
            continue
        near, far = (run_of(-sign * (numbers + n)).partials[0].arrays for n in (0, SHIFT))
        notes += [
            f"{name!r} stays 0, its fresh value, if all data are {word}: does it need preprocess?"
            for name in stuck
            if np.isin(-sign * near[name], numbers).all()
            and np.array_equal(far[name], near[name] - sign * SHIFT)
        ]
    return notes


def _is_zero(array: AnyArray) -> bool:
    """Return whether a buffer of numbers has only zeros."""
    return array.dtype.kind in "iuf" and array.size > 0 and not array.any()


def _too_small_integers(subject: Subject) -> list[str]:
    """Return notes about results that integers make wrong, such as negative differences."""
    if not visible_methods(subject.original):
        return []
    numbers = np.random.default_rng(5).integers(0, 100, subject.data.shape).astype("uint8")
    plain, exact = (subject.results(data=numbers.astype(kind)) for kind in ("uint8", "float64"))
    notes = []
    for name, found in plain.items():
        expected = exact[name]
        numeric = {found.dtype.kind, expected.dtype.kind} <= set("iuf")
        if not numeric or found.shape != expected.shape:
            continue
        wrong = ~np.isclose(found, expected, rtol=1e-3, atol=1e-3, equal_nan=True)
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            notes.append(
                f"{name!r} is {found[place]:g} for frames of uint8, and {expected[place]:g} for "
                "the same numbers as float64: integers are too small for some of its steps. "
                "Convert frames first, such as frame.astype('float32'), or declare a larger dtype"
            )
    return notes
