"""Find likely mistakes that break no law: untested merges, ignored methods, and more."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from udfdask.errors import UDFError
from udfdask.merge.merge import merge_group
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
    notes = static_warnings(subject) + _missing_neighbors(subject)
    searches = (
        _returned,
        _never_filled,
        _kept_on_self,
        _starts_at_zero,
        _too_small_integers,
    )
    for find in searches:
        try:
            notes += find(subject)
        except UDFCheckError:  # its law was skipped, or the UDF rejects the data of this search
            continue
    return notes


def static_warnings(subject: Subject) -> list[str]:
    """Return notes about methods that are never called; nothing runs."""
    notes = misspelled_methods(subject.original)
    with suppress(UDFError):  # it has no processing method
        notes += _ignored_methods(subject)
    return notes


def _ignored_methods(subject: Subject) -> list[str]:
    """Return notes about processing methods of the user that another one replaces."""
    udf = subject.original
    if type(udf).get_method is not UDF.get_method:
        return []  # the UDF chooses
    used = f"process_{udf.get_method().value}"
    order = [c for c in type(udf).__mro__ if used in vars(c)]
    called, notes = names_in_methods(udf), []
    for name, cls in visible_methods(udf).items():
        if name == used or name not in OPTIONAL or not name.startswith("process_"):
            continue
        with_halo = udf.halo is not None and name in ("process_tile", "process_frame")
        inherited = bool(order) and order[0] is not cls and issubclass(cls, order[0])
        if name not in called and (with_halo or inherited):
            why = "because it has a halo" if with_halo else "inherited"
            notes.append(f"{cls.__name__} defines {name}, but {used} ({why}) is used")
    return notes


def _missing_neighbors(subject: Subject) -> list[str]:
    """Return a note about an own mean, or something like it, over frames that do not exist."""
    udf = subject.original
    if udf.halo is None or udf.boundary != "mask" or "process_neighborhood" not in vars(type(udf)):
        return []
    if udf.get_method() is not UDFMethod.NEIGHBORHOOD or "neighbor_mask" in names_in_methods(udf):
        return []
    text = (
        "process_neighborhood does not read self.meta.neighbor_mask: frames beyond the ends of the "
        "scan are 0 there, so a mean over all frames is too small. If you need a mean, leave them "
        "out, or set boundary = 'nearest'"
    )
    return [text]


def _returned(subject: Subject) -> list[str]:
    """Return a note about a processing method that returns a value, which nobody uses."""
    method = f"process_{subject.udf.get_method().value}"
    process = getattr(type(subject.udf), method)
    if method not in visible_methods(subject.udf):
        return []
    returned: list[str] = []

    def call(udf: UDF, data: Any) -> None:
        value = process(udf, data)
        if value is not None:
            returned.append(type(value).__name__)

    subject.run(udf=varied(subject.udf, **{method: call}))
    if not returned:
        return []
    text = (
        f"{method} returns a value of type {returned[0]}, which is not used: assign it to a "
        "buffer, such as self.results.name[:] = value"
    )
    return [text]


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
    if not run.partials:
        return []
    names = set(run.declared.allocated) - _filled(run) - _for_other_data(run)
    for nav_chunks in scan_chunkings(subject.nav):
        if not names:
            return []
        names -= _filled(subject.run(Layout(nav_chunks=nav_chunks)))
    if not names:
        return []
    shown = ", ".join(repr(name) for name in run.declared.allocated if name in names)
    one = len(names) == 1
    their = "its" if one else "their"
    text = f"{'buffer' if one else 'buffers'} {shown} never left {their} fresh value"
    data = f"pass data for which {'it changes' if one else 'they change'}"
    if run.declared.merge.mode != "none":
        return [f"{text}, so {their} merge is not tested: {data}"]
    first = next(name for name in run.declared.allocated if name in names)
    return [f"{text}: assign it in a method (self.results.{first}[:] = value), or {data}"]


def _for_other_data(run: EagerRun) -> set[str]:
    """Return the names of the private buffers of a ready-made UDF, or of a class made of one.

    It may need one for other data only, as StdDevUDF needs `origin` for data that are no integers.
    """
    if not run.declared.cls.get_result_buffers.__module__.startswith("udfdask."):
        return set()
    return {name for name, spec in run.declared.allocated.items() if spec.use == "private"}


def _filled(run: EagerRun) -> set[str]:
    """Return the names of the buffers that differ from fresh ones in some chunk or its merge."""
    names: set[str] = set()
    for partial in run.partials:
        fresh = _fresh(run, partial)
        for name, array in partial.arrays.items():
            if not array.size or differing(array, fresh[name], Tolerance()).any():
                names.add(name)
    return names


def _fresh(run: EagerRun, partial: Any) -> dict[str, AnyArray]:
    """Return the buffers that `preprocess` has filled, over the rows of a partial result."""
    cls: Any = run.declared.cls
    idle = type(cls.__name__, (cls,), {"merge": lambda self, dest, src: None})
    return merge_group(run.with_changes(cls=idle), 0, [partial]).arrays


def _starts_at_zero(subject: Subject) -> list[str]:
    """Return notes about a maximum of negative data, or a minimum of positive data, that is 0.

    Such a buffer has only values of the data, and rises with them, for data of the other sign. So
    counts and sums of the positive part are no false alarm.
    """
    data = subject.data
    if data.dtype.kind not in "if" or not data.size:
        return []
    numbers = np.random.default_rng(21).integers(1, 40, size=data.shape)

    def partial_of(values: Any) -> tuple[EagerRun, dict[str, AnyArray]]:
        run = subject.run(data=values.astype(data.dtype))
        return run, run.partials[0].arrays

    notes = []
    for word, sign in (("negative", -1), ("positive", 1)):
        if not (sign * data > 0).any():
            continue  # the user's data have only the other sign
        run, held = partial_of(sign * numbers)
        fresh = _fresh(run, run.partials[0])
        stuck = [k for k, array in held.items() if _is_zero(array) and _is_zero(fresh[k])]
        if not stuck:
            continue
        near, far = (partial_of(-sign * (numbers + extra))[1] for extra in (0, SHIFT))
        notes += [
            f"{name!r} stays 0, its fresh value, if all data are {word}: does it need preprocess?"
            for name in stuck
            if np.isin(-sign * near[name], numbers).all()
            and np.array_equal(far[name], near[name] - sign * SHIFT)
        ]
    return notes


def _too_small_integers(subject: Subject) -> list[str]:
    """Return notes about results that integers make wrong, such as negative differences."""
    if not visible_methods(subject.original):
        return []
    numbers = np.random.default_rng(5).integers(0, 100, subject.data.shape).astype("uint8")
    plain, exact = (subject.results(data=numbers.astype(kind)) for kind in ("uint8", "float64"))
    notes = []
    for name, values in plain.items():
        if values.dtype.kind not in "iuf" or exact[name].dtype.kind not in "iuf":
            continue
        found, expected = values.astype("float64"), exact[name].astype("float64")
        if found.shape != expected.shape:
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


def _is_zero(array: AnyArray) -> bool:
    """Return whether a buffer of numbers has only zeros."""
    return array.dtype.kind in "iuf" and array.size > 0 and not array.any()
