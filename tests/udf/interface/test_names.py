"""Point 31: the names that a ported UDF imports or uses."""

import numpy as np
import pytest

import udfdask as ud

NAMES = """
UDF UDFMethod Shape Slice UDFError UDFRunCancelled InvalidMaskError
UDFFrameMixin UDFTileMixin UDFPartitionMixin UDFPreprocessMixin UDFPostprocessMixin UDFMergeAllMixin
""".split()


@pytest.mark.point(31)
@pytest.mark.parametrize("name", NAMES)
def test_from_the_package(name):
    assert name in ud.__all__
    assert name in dir(ud)
    assert getattr(ud, name).__module__.startswith("udfdask.")


@pytest.mark.point(31)
def test_errors_are_of_one_tree():
    assert issubclass(ud.UDFRunCancelled, ud.UDFError)
    assert issubclass(ud.InvalidMaskError, ud.UDFError)


@pytest.mark.point(31)
def test_shapes():
    shape = ud.Shape((4, 5, 16, 17), sig_dims=2)
    assert shape == (4, 5, 16, 17)
    assert (shape.nav, shape.sig, shape.dims, shape.sig_dims) == ((4, 5), (16, 17), 4, 2)
    assert (shape.nav.size, shape.sig.size, shape.size) == (20, 272, 5440)
    assert shape.flatten_nav() == (20, 16, 17)
    assert shape.flatten_nav().nav == (20,)
    assert shape.flatten_sig() == (4, 5, 272)
    assert shape.flatten_sig().sig == (272,)
    assert type(shape.to_tuple()) is tuple
    assert type(shape + (1,)) is tuple  # noqa: RUF005
    assert np.zeros(shape.nav).shape == (4, 5)
    with pytest.raises(ValueError, match=r"sig_dims must be between 0 and 2, not 3"):
        ud.Shape((4, 5), sig_dims=3)
    with pytest.raises(ValueError, match=r"origin \(1, 2, 3\) and shape .* differ in length"):
        ud.Slice((1, 2, 3), ud.Shape((4, 5), sig_dims=1))
