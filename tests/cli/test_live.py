"""`udfdask run --live`: what is shown on the way, and that the end is that of any run."""

import numpy as np
import pytest

from commands import call, tables

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def after_each_chunk(monkeypatch):
    """Results are shown after each chunk, not only every two seconds."""
    monkeypatch.setattr("udfdask.cli.run.EVERY", 0)
    monkeypatch.setattr("udfdask.cli.run.monotonic", lambda: 0.0)
    monkeypatch.setattr("udfdask.plotting.live._PAUSE", 0.0)


def test_each_chunk_is_shown_and_the_end_is_the_same(file):
    options = ["--udf", "sumsig", "--udf", "com:r=4", "--chunks", "2,8,-1,-1", "--no-progress"]
    plain = call("run", file, *options)
    live = call("run", file, *options, "--live")
    assert live.count("1 of 3 chunks, 16 frames\n") == 1
    assert live.count("2 of 3 chunks, 32 frames\n") == 1
    assert "3 of 3 chunks" not in live  # the last table is that of the end
    assert live.endswith(plain[plain.index("\nudf ") :])
    assert len(tables(live)) == 3 * len(tables(plain))


def test_all_outputs_are_written_at_the_end(file, tmp_path):
    figure, store = tmp_path / "a.png", tmp_path / "a.npz"
    asked = ["--udf", "sumsig", "--udf", "sum", "--chunks", "2,8,-1,-1"]
    output = call("run", file, *asked, "--plot", figure, "--out", store, "--live")
    assert output.endswith(f"wrote {store}\nwrote {figure}\n")
    assert figure.read_bytes().startswith(b"\x89PNG")
    with np.load(store) as arrays:
        np.testing.assert_array_equal(arrays["sumsig_intensity"], np.load(file).sum(axis=(2, 3)))
    assert {p.name for p in tmp_path.iterdir()} == {"a.png", "a.npz", "scan.npy"}
