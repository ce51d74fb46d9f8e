"""Find likely mistakes that break no law: untested merges, ignored methods, and more."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from udfdask.errors import UDFError
from udfdask.testing.assertions import UDFCheckError, differing
from udfdask.testing.subject import Subject
from udfdask.udf import UDF
from udfdask.udf.written_methods import (
    METHODS,
    misspelled_methods,
    names_in_methods,
    visible_methods,
)

SHIFT = 20
"""Number that is added to the data to tell a maximum from a count."""


def notes_for_authors(subject: Subject) -> list[str]:
    """Return notes about likely mistakes that no law finds."""
    notes = misspelled_methods(subject.original)
    with suppress(UDFError):  # it has no processing method
        notes += _ignored_methods(subject.original)
    for find in (_never_filled, _starts_at_zero, _too_small_integers):
        # its law was skipped, or the UDF rejects the data of this search
        with suppress(UDFCheckError):
            notes += find(subject)
    return notes


def _ignored_methods(udf: UDF) -> list[str]:
    """Return notes about processing methods of a class that an inherited one replaces."""
    if type(udf).get_method is not UDF.get_method:
        return []  # the UDF chooses
    used = f"process_{udf.get_method().value}"
    owner = next((cls for cls in type(udf).__mro__ if used in vars(cls)), type(udf))
    called = names_in_methods(udf)
    return [
        f"{cls.__name__} defines {name}, but {used} is used"
        for name, cls in visible_methods(udf).items()
        if name in {f"process_{method}" for method in METHODS} - called
        and cls is not owner
        and issubclass(cls, owner)
    ]


def _never_filled(subject: Subject) -> list[str]:
    """Return a note about buffers that keep their fresh value."""
    run = subject.run()
    held, fresh = run.partials[0].arrays, run.fresh_buffers()
    # StdDevUDF needs `origin` only for data that are no integers
    is_ours = run.declared.cls.get_result_buffers.__module__.startswith("udfdask.")
    return [
        f"buffer {name!r} never left its fresh value, so its merge is not tested: assign it in a "
        "method, or pass data for which it changes"
        for name, spec in run.declared.allocated.items()
        if held[name].size
        and not differing(held[name], fresh[name]).any()
        and not (is_ours and spec.use == "private")
    ]


def _starts_at_zero(subject: Subject) -> list[str]:
    """Return notes about a maximum of negative data, or a minimum of positive data, that is 0.

    Such a buffer has only values of the data, and rises with them, for data of the other sign. So
    counts and sums of the positive part are no false alarm.
    """
    data = subject.data
    if data.dtype.kind not in "if":
        return []
    numbers = np.random.default_rng(21).integers(1, 40, size=data.shape)
    fresh = subject.run().fresh_buffers()
    notes = []
    for word, sign in (("negative", -1), ("positive", 1)):
        if not (sign * data > 0).any():
            continue  # the user's data have only the other sign
        held, near, far = (
            subject.run(data=values.astype(data.dtype)).partials[0].arrays
            for values in (sign * numbers, -sign * numbers, -sign * (numbers + SHIFT))
        )
        notes += [
            f"{name!r} stays 0, its fresh value, if all data are {word}: does it need preprocess?"
            for name, array in held.items()
            if array.dtype.kind in "iuf"
            and array.size
            and not (array.any() or fresh[name].any())
            and np.isin(-sign * near[name], numbers).all()
            and np.array_equal(far[name], near[name] - sign * SHIFT)
        ]
    return notes


def _too_small_integers(subject: Subject) -> list[str]:
    """Return notes about results that integers make wrong, such as negative differences."""
    if not visible_methods(subject.original):
        return []
    numbers = np.random.default_rng(5).integers(0, 100, subject.data.shape).astype("uint8")
    plain, exact = (subject.results(data=numbers.astype(kind)) for kind in ("uint8", "float64"))
    return [
        f"{name!r} is not the same for frames of uint8 and for the same numbers as float64: "
        "integers are too small for some of its steps. Convert frames first, such as "
        "frame.astype('float32'), or declare a larger dtype"
        for name, found in plain.items()
        if {found.dtype.kind, exact[name].dtype.kind} <= set("iuf")
        and found.shape == exact[name].shape
        and not np.allclose(found, exact[name], rtol=1e-3, atol=1e-3, equal_nan=True)
    ]
