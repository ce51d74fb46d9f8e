"""Labels of extra dimensions are names of parts of a result, if only one result has them."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.testing import assert_eq
from udfdask.udfs import CoMUDF

X = da.from_array(np.arange(4 * 5 * 3 * 3.0).reshape(4, 5, 3, 3), chunks=(2, 5, 3, 3))


class Labeled(ud.UDF):
    """Labels along the first, the last and two dimensions of results of every kind."""

    def get_result_buffers(self):
        return {
            "first": self.buffer("nav", extra_shape=(2, 3), dtype="f8"),
            "frame": self.buffer("sig", extra_shape=(2,), dtype="f8"),
            "single": self.buffer("single", extra_shape=(3, 2), dtype="f8"),
            "b": self.buffer("nav", dtype="f8"),
        }

    def get_result_axes(self):
        return {
            "first": (ud.Axis(name="part", labels=("a", "b")), ud.Axis(name="number")),
            "frame": (ud.Axis(name="end", labels=("least", "shared")),),
            "single": (ud.Axis(name="number"), ud.Axis(name="of", labels=("mean", "shared"))),
        }

    def process_frame(self, frame):
        self.results.first[:] = frame.sum() * np.arange(6).reshape(2, 3)
        self.results.frame[:] += frame[..., np.newaxis] * [1, 2]
        self.results.single[:] += frame.sum() * np.arange(6).reshape(3, 2)
        self.results.b[:] = -1

    def merge(self, dest, src):
        dest.first[:] = src.first
        dest.b[:] = src.b
        dest.frame += src.frame
        dest.single += src.single


@pytest.mark.parametrize("compute", [False, True])
def test_a_label_is_a_part(compute):
    result = ud.run_udf(X, Labeled(), roi=np.s_[1:])
    result = result.compute() if compute else result
    for of in (result, result.raw, result.valid_mask):
        assert_eq(of["a"], of["first"][..., 0, :])
        assert_eq(of["least"], of["frame"][..., 0])
        assert_eq(of["mean"], of["single"][:, 0])
        assert of["b"].ndim == of["first"].ndim - 2, "a result comes before a label"


def test_a_label_of_several_results_is_none():
    for udf, name in ((Labeled(), "shared"), (CoMUDF(), "y")):
        result = ud.run_udf(X, udf)
        assert name not in result
        with pytest.raises(ud.UndeclaredBufferError, match=f"has no result '{name}'"):
            result[name]


def test_signals_of_labels():
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    import udfdask.hyperspy  # noqa: F401

    signal = hs.signals.Signal2D(X).as_lazy()
    signal.metadata.General.title = "scan"
    result = signal.udf.run_udf(Labeled(), lazy_output=False)
    plain = ud.run_udf(X, Labeled()).compute()
    for name, shown in (("a", "(5, 4|3)"), ("least", "(|3, 3)"), ("mean", "(|3)")):
        assert f"title: {name} of scan, dimensions: {shown}" in repr(result[name])
        assert f"dimensions: {shown}" in repr(result.valid_mask[name])
        np.testing.assert_array_equal(result[name].data, plain[name])
