"""Axes of outputs: names, positions and units are those of the data and of the results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import call, write_with_axes
from udfdask.geometry.axes import Axis
from udfdask.io import open_file

pytest.importorskip("h5py", reason="h5py is in the io extra")
DATA = np.random.default_rng(5).integers(0, 1000, (3, 4, 10, 10)).astype(np.uint16)
UNITS = ("nm", "1/nm", "mrad", "Å", "µm")


def same(found, wanted):
    """Compare two axes; positions in files are rounded."""
    assert (found.name, found.unit) == (wanted.name, wanted.unit)
    assert found.scale == pytest.approx(wanted.scale, rel=1e-9)
    assert found.offset == pytest.approx(wanted.offset, abs=1e-9 * (1 + abs(wanted.scale)))


scales = st.floats(0.01, 100).flatmap(lambda scale: st.sampled_from([scale, -scale]))


@st.composite
def all_axes(draw):
    """One axis per dimension, with units, scales of both signs and offsets."""
    names = draw(st.sampled_from([("y", "x", "ky", "kx"), ("scan y", "scan_x", "q·y", "q-x")]))
    nav, sig = draw(st.sampled_from(UNITS)), draw(st.sampled_from(UNITS))
    size = draw(scales)
    return tuple(
        Axis(
            name=name,
            unit=nav if k < 2 else sig,
            scale=draw(scales) if k < 2 else size,
            offset=draw(st.floats(-50, 50)),
        )
        for k, name in enumerate(names)
    )


@pytest.mark.parametrize("suffix", ["zarr", pytest.param("nc", marks=pytest.mark.full), "hspy"])
@settings(max_examples=3, deadline=None)
@given(axes=all_axes())
def test_axes_come_back(suffix, axes, tmp_path_factory):
    pytest.importorskip("hyperspy", reason="hyperspy is in the io extra")
    folder = tmp_path_factory.mktemp("axes")
    file, out = write_with_axes(folder / "scan.h5", DATA, axes), folder / f"out.{suffix}"
    udfs = ["--udf", "sum", "--udf", "sumsig", "--udf", "radialprofile:n_bins=3"]
    call("run", file, *udfs, "--no-progress", "--out", out)
    wanted = {
        "sum_intensity": axes[2:],
        "sumsig_intensity": axes[:2],
        "radialprofile_intensity": (*axes[:2], None),
    }
    for name, expected in wanted.items():
        opened = open_file(out, dataset=name, sig_dims=1)
        assert opened.unit == "counts"
        for found, one in zip(opened.axes, expected, strict=True):
            if one is not None:
                same(found, one)
    found = opened.axes[-1]
    assert (found.name, found.unit) == ("radius", axes[2].unit)
    assert found.offset == pytest.approx(found.scale / 2)
