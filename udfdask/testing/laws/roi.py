"""Laws of regions of interest: frames outside are not there, and those inside do not notice."""

from __future__ import annotations

import numpy as np

from udfdask.testing.differences import Tolerance, differing, show
from udfdask.testing.eager_run import Layout
from udfdask.testing.failures import in_words
from udfdask.testing.sample_data import regions, roi_layouts
from udfdask.testing.udf_under_test import Subject, as_rows
from udfdask.types import AnyArray


def regions_do_not_break_it(subject: Subject) -> None:
    """With a region of interest the results are those of a plain loop over its frames."""
    for word, roi in regions(subject.nav):
        error = subject.error_with(subject.data, roi)
        if error is not None:
            subject.notes.append(f"ROI of {word}: {in_words(error, subject.udf)}")
            continue
        wanted = subject.reference(subject.data, roi)
        for layout in roi_layouts(subject.nav, roi):
            run = subject.run(layout)
            kinds = {name: spec.kind for name, spec in run.declared.outputs.items()}
            found = subject.results_of(run)
            difference = subject.difference(
                {k: found[k] for k in kinds}, as_rows(wanted, kinds, roi, len(subject.nav))
            )
            if difference:
                subject.fail(
                    f"{difference.name!r} is wrong with a ROI of {word}: {layout} give "
                    f"{difference.one}, a plain loop over the selected frames gives "
                    f"{difference.other} {difference.where}"
                )


def frames_do_not_notice_the_region(subject: Subject) -> None:
    """What a frame's rows hold does not depend on which other frames are selected.

    This is asked of nav buffers before they are merged and before `get_results`, which may well
    relate a frame to all others. A buffer that holds the numbers of the rows is right as well.
    """
    run = subject.run()
    nav = [name for name, spec in run.declared.allocated.items() if spec.kind == "nav"]
    if not nav:
        return
    whole = run.partials[0].arrays
    for word, roi in regions(subject.nav):
        if not roi.any() or subject.error_with(subject.data, roi) is not None:
            continue
        (partial,) = subject.run(Layout(roi=roi)).partials
        for name in nav:
            wanted, found = whole[name][roi.ravel()], partial.arrays[name]
            if found.shape == wanted.shape and not _are_row_numbers(whole[name], found):
                _compare(subject, name, found, wanted, word, roi)


def _are_row_numbers(whole: AnyArray, found: AnyArray) -> bool:
    """Return whether a nav buffer counts the rows of a run."""
    return all(
        a.ndim == 1 and a.dtype.kind in "iu" and np.array_equal(a, np.arange(len(a)))
        for a in (whole, found)
    )


def _compare(
    subject: Subject, name: str, found: AnyArray, wanted: AnyArray, word: str, roi: AnyArray
) -> None:
    """Fail if the rows of a nav buffer differ between a region and the whole scan."""
    tolerance: Tolerance = subject.tolerance(subject.data)
    wrong = differing(found, wanted, tolerance)
    if not wrong.any():
        return
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    position = tuple(int(i) for i in np.argwhere(roi)[index[0]])
    subject.fail(
        f"nav buffer {name!r} of a frame depends on which other frames are in the ROI: at scan "
        f"position {position} it is {show(found[index])} with a ROI of {word}, and "
        f"{show(wanted[index])} with the whole scan. meta.slice counts the rows of the ROI; "
        "meta.coordinates holds scan positions"
    )
