"""Names in errors: buffers that a UDF returns or leaves out, parameters without a name."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.udf.written_methods import quoted

X = da.ones((4, 4, 6, 6), chunks=(2, 4, 6, 6))


def declaring(**uses):
    """A UDF with the single buffers of these names and uses; its methods come later."""

    class Declares(ud.UDF):
        def get_result_buffers(self):
            return {name: self.buffer(kind="single", use=use) for name, use in uses.items()}

        def process_frame(self, frame):
            pass

        def merge(self, dest, src):
            pass

    return Declares


def error_of(udf):
    with pytest.raises(ud.UDFError) as caught:
        ud.run_udf(X, udf).compute(scheduler="synchronous")
    return str(caught.value)


def test_a_misspelled_name():
    class Typo(declaring(mean=None)):
        def process_frame(self, frame):
            self.results.meen += 1

    with pytest.raises(AttributeError, match=r"no buffer 'meen'; .*; did you mean") as caught:
        ud.run_udf(X, Typo()).compute(scheduler="synchronous")
    assert len(caught.value.__notes__) == 1


def test_what_get_results_returns():
    class Returns(declaring(mean="result_only", total="result_only", a=None)):
        def get_results(self):
            return {"meen": 1, "other": 2, "a": np.zeros(1)}

    text = error_of(Returns())
    assert "returned 'meen' (did you mean 'mean'?) and 'other', which are not declared" in text
    assert "left out 'mean' and 'total', which are declared use='result_only'" in text


def test_what_get_results_leaves_out():
    class Returns(declaring(mean="result_only", total="result_only", sum="result_only")):
        def get_results(self):
            return {"mean": np.zeros(1), "total": None}

    assert "left out 'total' and 'sum', which are declared use='result_only'" in error_of(Returns())


def test_private_buffers_are_no_results():
    class Returns(declaring(mean="private", total="private", a=None)):
        def get_results(self):
            return {"mean": 1, "total": 1}

    assert "returned 'mean' and 'total', which are declared use='private'" in error_of(Returns())


def test_what_merge_all_returns_and_leaves_out():
    class Merges(declaring(mean=None, total=None)):
        def merge_all(self, ordered_results):
            return {"meen": 1, "other": 2}

    text = error_of(Merges())
    assert "returned 'meen' (did you mean 'mean'?) and 'other', which are not buffers of" in text
    assert "left out buffers 'mean' and 'total'. It is called on" in text


@pytest.mark.parametrize(
    ("names", "meant", "text"),
    [
        (["a"], [], "'a'"),
        (["a", "b", "c"], [], "'a', 'b' and 'c'"),
        (["Mean", "x"], ["mean"], "'Mean' (did you mean 'mean'?) and 'x'"),
        ([3], ["mean"], "3"),
    ],
)
def test_names_as_text(names, meant, text):
    assert quoted(names, meant) == text


class Threshold(ud.UDF):
    def __init__(self, threshold, sigma=1):
        super().__init__(threshold, sigma=sigma)


class Plain(ud.UDF):
    pass


def test_the_message_has_the_names_of_the_users_parameters():
    remedy = r"by name: super\(\).__init__\(threshold=threshold, sigma=sigma\)"
    with pytest.raises(ud.ArgumentTypeError, match=f"of Threshold got 1 argument .*{remedy}"):
        Threshold(3)


def test_a_class_without_init():
    with pytest.raises(TypeError, match=r"Plain got 2 arguments without a name: .*Plain\(thr"):
        Plain(3, 4)
