"""Check a user's UDF against the laws that every run with chunks relies on."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFWarning
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.electrons import volts
from udfdask.testing.assertions import UDFCheckError
from udfdask.testing.laws import chunks, processing, promises
from udfdask.testing.subject import Subject, default_arrays
from udfdask.udf import UDF
from udfdask.udf.libertem_udfs import as_own
from udfdask.udf.written_methods import misspelled_methods

Law = Callable[[Subject], None]

LAWS: tuple[Law, ...] = (
    processing.makes_itself_again,
    processing.can_be_pickled,
    promises.declares_once,
    processing.runs,
    processing.leaves_its_input_alone,
    processing.keeps_no_state,
    processing.repeats_itself,
    promises.merge_only_reads_src,
    promises.processes_stacks,
    promises.processes_sums,
    promises.takes_any_byte_order,
    promises.adds_signal_parts,
    promises.only_sums_frames,
    processing.gives_what_a_plain_loop_gives,
    processing.buffers_hold_what_they_are_given,
    chunks.tiles_do_not_show,
    chunks.merge_takes_every_buffer,
    chunks.chunks_do_not_show,
    chunks.merge_agrees_with_merge_all,
    chunks.regions_do_not_break_it,
    chunks.frames_do_not_notice_the_region,
    chunks.dtypes_are_welcome,
    chunks.backends_do_not_show,
    chunks.dask_does_not_show,
)
"""All laws. Basic ones come first, because only the first broken law is reported.

A law about a promise is only checked if the UDF makes this promise.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The result of a successful `check_udf`.

    Examples
    --------
    >>> import udfdask as ud
    >>> from udfdask.testing import check_udf
    >>> class MaxUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"max": self.buffer(kind="nav")}
    ...     def process_frame(self, frame):
    ...         self.results.max[:] = frame.max()
    >>> report = check_udf(MaxUDF())
    >>> report.udf_name, "chunks_do_not_show" in report.laws
    ('MaxUDF', True)
    """

    udf_name: str
    """Name of the UDF's class."""
    laws: tuple[str, ...]
    """Names of the laws that the UDF keeps, also those about its promises."""
    skipped: tuple[str, ...]
    """Names of the laws that were skipped."""
    notes: tuple[str, ...]
    """Likely mistakes that break no law, and cases that were not checked, such as a dtype for which
    the UDF raised an exception."""

    def __str__(self) -> str:
        first_lines = {law.__name__: (law.__doc__ or "").partition("\n")[0] for law in LAWS}
        n = len(self.notes)
        notes = "and has no notes" if not n else f"but has {n} note{'s' * (n > 1)} to read"
        return "\n".join(
            [
                f"{self.udf_name} keeps {len(self.laws)} laws, {notes}.",
                *(f"  note: {note}" for note in self.notes),
                *(f"  skipped: {name}" for name in self.skipped),
                "\nLaws that it keeps:",
                *(f"  {name}: {first_lines[name]}" for name in self.laws),
            ]
        )


def check_udf(
    udf: UDF,
    array: Any = None,
    *,
    sig_dims: int = 2,
    skip: Sequence[str] = (),
    axes: Sequence[Axis] | None = None,
    voltage: Any = None,
) -> CheckReport:
    """Check that the results of a UDF do not depend on chunks, tiles, or the place where it runs.

    The UDF runs with many chunkings, tile shapes, regions of interest, merge orders and dtypes, on
    the array backends that it offers, and on threads. The results are compared with those of
    `run_reference`. Each promise of the UDF is tested. The message describes the first broken law.

    Parameters
    ----------
    udf : UDF
        The UDF to check.
    array : array, shape (*nav, *sig), optional
        Data for this UDF, NumPy or dask. They are kept in memory and processed some hundred times,
        so a scan of a few positions is enough. By default small arrays of several dtypes with
        whole numbers and (4, 6) scan positions.
    sig_dims : int
        Number of signal axes.
    skip : sequence of str
        Names of laws to skip, as in the messages.
    axes, voltage : optional
        Axes of the data and voltage of the microscope, as in `udfdask.run_udf`, if the UDF needs
        them.

    Returns
    -------
    CheckReport
        The checked laws, and notes about likely mistakes. `print` shows the notes first, then one
        line for each law.

    Raises
    ------
    UDFCheckError
        If the UDF breaks a law. This exception is an AssertionError.
    ArgumentTypeError
        If `udf` is not an instance of a UDF, or its `promises` are not `Promises`.
    ArgumentValueError
        If `skip` contains an unknown name.

    Examples
    --------
    >>> import udfdask as ud
    >>> from udfdask.testing import check_udf
    >>> class CountUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"count": self.buffer("single", dtype="int64")}
    ...     def process_frame(self, frame):
    ...         self.results.count += 1
    ...     def merge(self, dest, src):
    ...         dest.count[:] = src.count
    >>> check_udf(CountUDF())
    Traceback (most recent call last):
    ...
    udfdask.testing.assertions.UDFCheckError: CountUDF: merge is not associative: ...
    """
    __tracebackhide__ = True  # pytest then shows the message and the caller's line
    udf = as_own(udf)
    if not isinstance(udf, UDF):
        raise ArgumentTypeError(
            f"expected an instance of a UDF, got {udf!r}"
            + (f": write {udf.__name__}(...)" if isinstance(udf, type) else "")
        )
    names = [law.__name__ for law in LAWS]
    if unknown := sorted(set(skip) - set(names)):
        raise ArgumentValueError(
            f"skip contains {unknown[0]!r}, which is not a law; the laws are {', '.join(names)}"
        )
    selected = [
        law
        for law in LAWS
        if law.__name__ not in skip and getattr(udf.promises, law.__name__, True) is not False
    ]
    calibration = None
    if axes is not None:
        known = None if voltage is None else volts(voltage)
        calibration = Calibration(axes=tuple(axes), voltage=known)
    subject = Subject(udf, _arrays(array, sig_dims), sig_dims, calibration)
    with warnings.catch_warnings():
        # 0 / 0 in an empty frame and small chunks are not mistakes of the UDF
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", UDFWarning)
        for law in selected:
            _check(law, subject)
        # data that the UDF rejects
        with contextlib.suppress(UDFCheckError):
            _note_extremes_from_zero(subject)
    notes = [*misspelled_methods(udf), *subject.notes]
    return CheckReport(
        udf_name=type(udf).__name__,
        laws=tuple(law.__name__ for law in selected),
        skipped=tuple(skip),
        notes=tuple(dict.fromkeys(notes)),
    )


def _check(law: Law, subject: Subject) -> None:
    """Check one law; name the UDF and the law in its error."""
    __tracebackhide__ = True
    try:
        law(subject)
    except UDFCheckError as error:
        name = law.__name__
        complete = UDFCheckError(f"{type(subject.udf).__name__}: {error} [law {name}]")
        complete.law = name
        for hint in misspelled_methods(subject.udf):  # often the cause
            complete.add_note(f"note: {hint}")
        raise complete from error.__cause__


def _note_extremes_from_zero(subject: Subject) -> None:
    """Note a maximum of negative data, or a minimum of positive data, that is 0.

    For data of the other sign, such a buffer only has values of the data.
    """
    data = subject.data
    if data.dtype.kind not in "if":
        return
    # counts and sums are rarely prime numbers
    numbers = np.random.default_rng(21).choice([1009, 1013, 1019, 1021], size=data.shape)
    for word, sign in (("negative", -1), ("positive", 1)):
        if not (sign * data > 0).any():
            continue  # the user's data have only the other sign
        held, other = (
            subject.run(data=(s * numbers).astype(data.dtype)).partials[0].arrays
            for s in (sign, -sign)
        )
        subject.notes += [
            f"{name!r} stays 0, its fresh value, if all data are {word}: does it need preprocess?"
            for name, array in held.items()
            if array.dtype.kind in "iuf" and array.size and not array.any()
            if np.isin(-sign * other[name], numbers).all()
        ]


def _arrays(array: Any, sig_dims: int) -> list[AnyArray]:
    """Return the arrays for a check; a given one also byte-swapped, if it has a byte order."""
    if array is None:
        return default_arrays(sig_dims)
    if hasattr(array, "__dask_graph__"):
        array = array.compute(scheduler="sync")
    data = np.asarray(array)
    swapped = data.astype(data.dtype.newbyteorder("S"))
    return [data] if swapped.dtype == data.dtype else [data, swapped]
