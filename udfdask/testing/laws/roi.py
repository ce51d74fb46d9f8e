"""Laws about regions of interest: the frames outside do not matter for the frames inside."""

from __future__ import annotations

import numpy as np

from udfdask.testing.differences import differing, show
from udfdask.testing.eager_run import Layout
from udfdask.testing.failures import in_words
from udfdask.testing.sample_data import regions, roi_layouts
from udfdask.testing.udf_under_test import Subject, as_rows
from udfdask.types import AnyArray


def regions_do_not_break_it(subject: Subject) -> None:
    """With a region of interest, the results are the same as in a plain loop over its frames."""
    for name, roi in regions(subject.nav):
        error = subject.error_with(subject.data, roi)
        if error is not None:
            subject.notes.append(f"ROI of {name} not checked: {in_words(error, subject.udf)}")
            continue
        expected = subject.reference(subject.data, roi)
        for layout in roi_layouts(subject.nav, roi):
            run = subject.run(layout)
            kinds = {name: spec.kind for name, spec in run.declared.outputs.items()}
            results = subject.results_of(run)
            difference = subject.difference(
                {k: results[k] for k in kinds}, as_rows(expected, kinds, roi, len(subject.nav))
            )
            if difference:
                subject.fail(
                    f"{difference.name!r} is wrong with a ROI of {name}: {layout} give "
                    f"{difference.one}, a plain loop over the selected frames gives "
                    f"{difference.other} {difference.where}"
                )


def frames_do_not_notice_the_region(subject: Subject) -> None:
    """The values of a frame in nav buffers do not depend on which other frames are selected.

    The law is about nav buffers before merges and `get_results`, because these may relate a frame
    to all others. A buffer that contains the row numbers is allowed.
    """
    run = subject.run()
    nav = [name for name, spec in run.declared.allocated.items() if spec.kind == "nav"]
    if not nav:
        return
    full = run.partials[0].arrays
    for region, roi in regions(subject.nav):
        if not roi.any() or subject.error_with(subject.data, roi) is not None:
            continue
        (partial,) = subject.run(Layout(roi=roi)).partials
        for name in nav:
            expected, rows = full[name][roi.ravel()], partial.arrays[name]
            if rows.shape == expected.shape and not _are_row_numbers(full[name], rows):
                _compare(subject, name, rows, expected, region, roi)


def _are_row_numbers(full: AnyArray, rows: AnyArray) -> bool:
    """Return whether a nav buffer contains the row numbers, in both of two runs."""
    return all(
        a.ndim == 1 and a.dtype.kind in "iu" and np.array_equal(a, np.arange(len(a)))
        for a in (full, rows)
    )


def _compare(
    subject: Subject, name: str, rows: AnyArray, expected: AnyArray, region: str, roi: AnyArray
) -> None:
    """Fail if the rows of a nav buffer differ between a region and the whole scan."""
    wrong = differing(rows, expected, subject.tolerance(subject.data))
    if not wrong.any():
        return
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    position = tuple(int(i) for i in np.argwhere(roi)[index[0]])
    subject.fail(
        f"nav buffer {name!r} of a frame depends on which other frames are in the ROI: at scan "
        f"position {position} it is {show(rows[index])} with a ROI of {region}, and "
        f"{show(expected[index])} with the whole scan. meta.slice counts the rows of the ROI; "
        "meta.coordinates holds scan positions"
    )
