"""The page `Ten minutes` is one script, for the file it makes and for files of other kinds."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fences import read_fences
from udfdask.demo import make_recording

pytestmark = pytest.mark.full

PAGE = Path(__file__).resolve().parents[2] / "docs" / "getting-started" / "ten-minutes.md"
CELLS = [
    re.sub("^:tags:.*", "", fence.text)
    for fence in read_fences(PAGE)
    if fence.language == "{code-cell}" and "remove-cell" not in fence.text
]
OTHER_FILES = [fence.text for fence in read_fences(PAGE) if fence.language == "python"]
# The first makes a file, the second opens it, and the third makes the axes.
MAKE, OPEN, AXES, *REST = CELLS


def in_the_ring(frames, cy, cx):
    """The sums of the pixels from 6 to 18 mrad."""
    y, x = np.ogrid[:96, :96]
    distance = np.hypot(y - cy, x - cx) * 0.4
    return frames[..., (distance > 6) & (distance <= 18)].sum(axis=-1)


@pytest.fixture(scope="module")
def recording():
    """As the page makes it, on fewer positions."""
    return make_recording((12, 16), (96, 96), chunks=(3, -1, -1, -1)).compute()


def saved(recording, name):
    """Write the recording into the current folder, in the format that the name says."""
    path = Path(name)
    if path.suffix == ".raw":
        recording.tofile(path)
    elif path.suffix == ".h5":
        import h5py

        with h5py.File(path, "w") as file:
            file["data"] = recording
    else:
        import hyperspy.api as hs

        signal = hs.signals.Signal2D(recording)
        for axis, (title, unit, scale) in zip(
            signal.axes_manager._axes,
            [("y", "nm", 0.5), ("x", "nm", 0.5), ("ky", "mrad", 0.4), ("kx", "mrad", 0.4)],
            strict=True,
        ):
            axis.name, axis.units, axis.scale = title, unit, scale
            axis.offset = -19.2 if unit == "mrad" else 0
        signal.save(path)


@pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning")  # the dashboard's
def test_the_page_is_one_script(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    figures = 0
    for cell in CELLS:
        *before, last = ast.parse(cell).body
        if isinstance(last, ast.Expr):  # Jupyter shows the value of the last line, and no other
            exec(compile(ast.Module(before, []), str(PAGE), "exec"), names)
            value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)
            figures += isinstance(value, Figure)
        else:
            exec(compile(cell, str(PAGE), "exec"), names)
    assert figures == 4
    frames = make_recording().compute()
    np.testing.assert_array_equal(names["pattern"]["intensity"], frames.sum(axis=(0, 1)))
    np.testing.assert_array_equal(names["maximum"]["peak"], frames.max(axis=(0, 1)))
    np.testing.assert_allclose((names["cy"], names["cx"]), 48, atol=0.1)
    expected = in_the_ring(frames, names["cy"], names["cx"])
    np.testing.assert_array_equal(names["dark"]["intensity"], expected)
    np.testing.assert_array_equal(names["saved"]["intensity"], names["dark"]["intensity"])
    np.testing.assert_array_equal(names["again"]["peak"], names["maximum"]["peak"])
    assert Path("dark-field.png").stat().st_size > 10_000
    out = capsys.readouterr().out
    assert "WrongUDF: merge is not associative: " in out
    assert "54.00 MiB, in one pass" in out


@pytest.mark.parametrize("block", OTHER_FILES, ids=["hspy", "raw", "h5"])
def test_other_files_take_the_place_of_the_first_one(
    block, recording, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    saved(recording, re.search(r'"(scan.*?)"', block)[1])
    if "nav_shape" in block:
        block = block.replace("(48, 64)", "(12, 16)")
    # this .h5 file knows no axes: then the page says to make the list
    analysis = [cell for cell in REST if not re.search("check_udf|Client", cell)]
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in [block, *([AXES] if ".h5" in block else []), *analysis]:
        exec(compile(cell, str(PAGE), "exec"), names)
    np.testing.assert_array_equal(names["maximum"]["peak"], recording.max(axis=(0, 1)))
    expected = in_the_ring(recording, names["cy"], names["cx"])
    np.testing.assert_array_equal(names["dark"]["intensity"], expected)
    assert [axis.unit for axis in names["dark"].axes["intensity"]] == ["nm", "nm"]
    capsys.readouterr()
