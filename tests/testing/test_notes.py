"""Likely mistakes that break no law are notes, and there is no note without a mistake."""

import numpy as np
import pytest

import udfdask as ud
from udfdask.testing import UDFCheckError, check_udf
from udfdask.testing.laws.check_udf import LAWS
from udfdask.udfs import StdDevUDF, SumUDF


def notes_of(udf, array=None):
    """Return the notes about a UDF; its laws are checked elsewhere."""
    others = {law.__name__ for law in LAWS} - {"merge_takes_every_buffer"}
    return check_udf(udf, array, skip=sorted(others)).notes


class Bright(ud.UDF):
    """Count bright pixels; the merge forgets one of the two buffers."""

    def __init__(self, threshold):
        super().__init__(threshold=threshold)

    def get_result_buffers(self):
        return {"total": self.buffer("sig"), "count": self.buffer("single", dtype="int64")}

    def process_frame(self, frame):
        self.results.total += frame
        self.results.count += np.count_nonzero(frame > self.params.threshold)

    def merge(self, dest, src):
        dest.total += src.total


@pytest.mark.full
def test_a_merge_of_buffers_that_never_change_is_not_tested():
    (note,) = check_udf(Bright(60)).notes  # the default data end at 59
    assert note.startswith("buffer 'count' never left its fresh value, so its merge is not tested")
    with pytest.raises(UDFCheckError, match="merge forgets buffer 'count'"):
        check_udf(Bright(60), np.arange(24 * 4).reshape(4, 6, 2, 2))


@pytest.mark.full
def test_ready_made_udfs_have_notes():
    assert notes_of(StdDevUDF()) == ()  # `origin` is only for data that are no integers
    (note,) = notes_of(SumUDF(), np.zeros((4, 6, 5, 7)))
    assert note.startswith("buffer 'intensity' never left its fresh value")


class Extreme(ud.UDF):
    """The maximum or minimum of each pixel."""

    def __init__(self, function, start):
        super().__init__(function=function, start=start)

    def get_result_buffers(self):
        return {"extreme": self.buffer("sig"), "positive": self.buffer("single", dtype="int64")}

    def preprocess(self):
        self.results.extreme[:] = self.params.start

    def process_frame(self, frame):
        self.results.extreme[:] = self.params.function(self.results.extreme, frame)
        self.results.positive += np.count_nonzero(frame > 0)

    def merge(self, dest, src):
        dest.extreme[:] = self.params.function(dest.extreme, src.extreme)
        dest.positive += src.positive


@pytest.mark.parametrize(
    ("function", "word", "start"),
    [(np.maximum, "negative", -np.inf), (np.minimum, "positive", np.inf)],
)
def test_a_maximum_that_starts_at_zero_is_noted(function, word, start):
    assert not notes_of(Extreme(function, start))  # nor for the count, 0 if none is positive
    (note,) = notes_of(Extreme(function, 0))
    assert note.startswith(f"'extreme' stays 0, its fresh value, if all data are {word}")


def test_a_maximum_from_zero_is_right_for_positive_data():
    data = np.arange(24 * 4).reshape(4, 6, 2, 2)
    assert not notes_of(Extreme(np.maximum, 0), data)
    notes = notes_of(Extreme(np.maximum, 0), -1 - data)
    assert any(note.startswith("'extreme' stays 0") for note in notes)


class Largest(ud.UDF):
    """One number for each frame."""

    def get_result_buffers(self):
        return {"largest": self.buffer(kind="nav")}

    def process_frame(self, frame):
        self.results.largest[:] = frame.max() + 1000


def test_names_that_are_nearly_right_are_noted():
    class Misspelled(Largest):
        def preproces(self):
            pass

        def merge_al(self):  # a helper of this name is used
            return 0

        def process_frame(self, frame):
            self.results.largest[:] = frame.sum() + self.merge_al()

    assert notes_of(Misspelled()) == (
        "Misspelled.preproces is never called: did you mean preprocess?",
    )


class Norm:
    """Keeps what it has seen first, as a cache in a class does."""

    top = None

    @classmethod
    def of(cls, frame):
        if cls.top is None:
            cls.top = float(frame.max())
        return max(cls.top, 1)


class FirstData(Largest):
    background = None

    def process_frame(self, frame):
        if FirstData.background is None:
            FirstData.background = frame.copy()
        self.results.largest[:] = (frame - self.background).max() / Norm.of(frame)


def test_values_of_the_first_data_are_noted():
    notes = check_udf(FirstData()).notes
    for name in ("FirstData.background", "Norm.top"):
        assert any(f"{name} is set when the first data are processed" in note for note in notes)
