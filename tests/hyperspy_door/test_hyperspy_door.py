"""`import udfdask.hyperspy` adds the accessor to all signals."""

import numpy as np
import pytest

from making import run_python
from udfdask.udfs import SumUDF

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402


def test_all_signals_have_it():
    assert hs.signals.BaseSignal.udf is udfdask.hyperspy.UDFAccessor
    for cls in (hs.signals.Signal1D, hs.signals.Signal2D, hs.signals.ComplexSignal2D):
        signal = cls(np.ones((2, 3, 4, 5)))
        for each in (signal, signal.as_lazy(), signal.deepcopy(), signal.T):
            assert repr(each.udf) == f"<UDFAccessor of {each!r}>"
            assert "udf" in dir(each)


def test_it_sees_the_signal_as_it_is_now():
    signal = hs.signals.Signal1D(np.ones((3, 4)))
    accessor = signal.udf
    signal.data = np.full((3, 4), 2.0)
    found = accessor.run_udf(SumUDF(), show_progressbar=False)["intensity"]
    np.testing.assert_array_equal(found.data, [6.0] * 4)


@pytest.mark.full
def test_without_hyperspy_it_says_what_to_install():
    code = "import sys; sys.modules['hyperspy'] = None; import udfdask.hyperspy"
    assert 'pip install "udfdask[hyperspy]"' in run_python("-c", code, fails=True).stderr
