"""The center on the command line: the same results as in Python, and mistakes before reading."""

import re

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from udfdask.cli import center_search, main
from udfdask.cli.center_option import Center, CenterSearch, to_center
from udfdask.cli.center_search import sampled_positions
from udfdask.io import open_file
from udfdask.udfs import FEMUDF, CoMUDF, RadialProfileUDF, SumUDF, VirtualDetectorUDF, find_center

NAV, SIG = (5, 6), (24, 32)
CENTER = (9.3, 19.6)
UNITS = ["--axes", "y=2nm,x=2nm,ky=0.5mrad@-4,kx=0.25mrad@-5"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A scan whose rings are far from the middle of the frame, and move a little."""
    path = tmp_path_factory.mktemp("center") / "scan.npy"
    moved = np.random.default_rng(3).normal(0, 0.2, (*NAV, 1, 1, 2))
    y, x = np.indices(SIG)
    d = np.hypot(y - CENTER[0] - moved[..., 0], x - CENTER[1] - moved[..., 1])
    np.save(path, (200 * np.exp(-(d**2) / 8) + 30 * np.exp(-((d - 7) ** 2) / 4)).astype("uint16"))
    return path


def call(*args, code=0):
    """Run a command in this process; return its output, with single spaces."""
    done = CliRunner().invoke(main, list(map(str, args)))
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def found(file, *args):
    """The arrays that a command writes."""
    out = file.with_name("found.npz")
    call("run", file, "--no-progress", "--out", out, "--overwrite", *args)
    with np.load(out) as arrays:
        return dict(arrays)


def assert_equal(arrays, results):
    for (name, buffer), expected in results.items():
        np.testing.assert_array_equal(arrays[f"{name}_{buffer}"], expected)


UDFS = [
    "--udf",
    "com:r=6",
    "--detector",
    "ring,ri=4,ro=9",
    "--udf",
    "sum",
    "--udf",
    "radialprofile",
]


def in_python(file, cy, cx, **options):
    udfs = [
        CoMUDF(r=6, cy=cy, cx=cx),
        VirtualDetectorUDF("ring", ri=4, ro=9, cy=cy, cx=cx),
        RadialProfileUDF(cy=cy, cx=cx),
    ]
    com, ring, profile = ud.compute(*ud.run_udf(open_file(file), udfs, **options))
    return {
        ("com", "raw_shifts"): com["raw_shifts"],
        ("ring", "intensity"): ring["intensity"],
        ("radialprofile", "intensity"): profile["intensity"],
    }


def test_a_center_is_that_of_cy_and_cx(file):
    assert_equal(found(file, *UDFS, "--center", "9.25, 20"), in_python(file, 9.25, 20))


def test_a_center_in_the_unit_of_the_axes(file):
    options = ["--udf", "com:r=6", "--udf", "fem:rad_in=2,rad_out=5", "--detector", "disk,r=3"]
    arrays = found(file, *UNITS, *options, "--center", "0.5mrad,-0.125 mrad")
    axes = [
        ud.Axis(name=name, unit=unit, scale=scale, offset=offset)
        for name, unit, scale, offset in [
            ("y", "nm", 2, 0),
            ("x", "nm", 2, 0),
            ("ky", "mrad", 0.5, -4),
            ("kx", "mrad", 0.25, -5),
        ]
    ]
    center = {"cy": "0.5 mrad", "cx": "-0.125 mrad"}
    udfs = [
        CoMUDF(r=6, **center),
        FEMUDF(center=("0.5 mrad", "-0.125 mrad"), rad_in=2, rad_out=5),
        VirtualDetectorUDF("disk", r=3, **center),
    ]
    opened = open_file(file)
    com, fem, disk = ud.compute(*ud.run_udf(opened.array, udfs, sig_dims=2, axes=axes))
    expected = {
        ("com", "raw_com"): com["raw_com"],
        ("fem", "intensity"): fem["intensity"],
        ("disk", "intensity"): disk["intensity"],
    }
    assert_equal(arrays, expected)


@pytest.mark.parametrize(("word", "method"), [("find", "symmetry"), ("com", "com")])
def test_the_found_center_is_that_of_find_center(file, word, method):
    total = ud.run_udf(open_file(file), SumUDF()).compute()["intensity"]
    cy, cx = find_center(total, method=method)
    assert_equal(found(file, *UDFS, "--center", word), in_python(file, cy, cx))


def test_a_center_in_a_unit_is_said_in_pixels(file):
    for command in ("run", "explain"):
        output = call(command, file, *UNITS, "--udf", "com:r=2", "--center", "0mrad,0.1mrad")
        assert "center y 0mrad, x 0.1mrad = y 8, x 20.4 px; for com" in output
        output = call(command, file, *UNITS, "--udf", "com:r=2", "--center", "9,500urad")
        assert "center y 9, x 500urad = y 9, x 22 px; for com" in output


def test_what_was_found_is_said(file):
    output = call("run", file, *UNITS, *UDFS, "--center", "find", "--no-progress")
    said = re.search(
        r"center y ([\d.]+), x ([\d.]+) px \(ky ([-\d.]+) mrad, kx ([-\d.]+) mrad\), "
        r"found in 30 of 30 frames; for com, ring, radialprofile reads",
        output,
    )
    assert said is not None
    y, x, ky, kx = map(float, said.groups())
    assert (y, x) == pytest.approx(CENTER, abs=0.2)
    assert (ky, kx) == pytest.approx((-4 + 0.5 * y, -5 + 0.25 * x), abs=0.005)


def test_only_frames_of_the_region_are_searched(file):
    region = np.zeros(NAV, bool)
    region[1:3, 2:] = True
    total = ud.run_udf(open_file(file), SumUDF(), roi=region).compute()["intensity"]
    arrays = found(file, *UDFS, "--center", "find", "--roi", "1:3,2:")
    assert_equal(arrays, in_python(file, *find_center(total), roi=region))


def test_frames_are_shifted_before_the_search(file):
    shifts = np.full((*NAV, 2), (-3.0, 4.0))
    np.save(file.with_name("shifts.npy"), shifts)
    total = ud.run_udf(open_file(file), SumUDF(), descan=shifts).compute()["intensity"]
    arrays = found(file, *UDFS, "--center", "find", "--descan", file.with_name("shifts.npy"))
    assert_equal(arrays, in_python(file, *find_center(total), descan=shifts))


def test_udfs_with_a_center_of_their_own_keep_it(file):
    arrays = found(file, "--udf", "com:cy=3,cx=4", "--udf", "com", "--center", "9,20")
    kept = ud.run_udf(open_file(file), CoMUDF(cy=3, cx=4))["raw_shifts"].compute()
    got = ud.run_udf(open_file(file), CoMUDF(cy=9, cx=20))["raw_shifts"].compute()
    assert_equal(arrays, {("com", "raw_shifts"): kept, ("com_2", "raw_shifts"): got})


def test_centers_of_the_frames_are_kept(file):
    centers = np.stack(np.indices(NAV), axis=-1) + np.array([7.0, 17.0])
    np.save(file.with_name("centers.npy"), centers)
    typed = f"com:r=6,centers={file.with_name('centers.npy')}"
    arrays = found(file, "--udf", typed, "--detector", "disk,r=3", "--center", "9,20")
    kept = ud.run_udf(open_file(file), CoMUDF(r=6, centers=centers)).compute()
    assert_equal(arrays, {("com", "raw_com"): kept["raw_com"]})


OWN = """
from udfdask import UDF

class Place(UDF):
    def __init__(self, cy=1, cx=2, center="word"):
        super().__init__(cy=cy, cx=cx, center=center)

    def get_result_buffers(self):
        return {"place": self.buffer(kind="nav", extra_shape=(2,))}

    def process_frame(self, frame):
        assert self.params.center == "word"
        self.results.place = self.params.cy, self.params.cx

class Needs(Place):
    calibrated = {}

    def __init__(self, cy, cx, center="word"):
        super().__init__(cy=cy, cx=cx, center=center)

class Positions(Needs):
    calibrated = {"cy": "y", "cx": "x"}

class Word(Place):
    def __init__(self, center="word"):
        super().__init__(center=center)
"""


def test_a_class_of_the_user_gets_the_center(file, monkeypatch):
    """`center` of a class that does not say that it is a position can mean anything."""
    file.with_name("own_place.py").write_text(OWN)
    monkeypatch.chdir(file.parent)
    arrays = found(file, "--udf", "own_place.py:Place", "--udf", "sum", "--center", "9.5,20")
    assert (arrays["place_place"] == (9.5, 20)).all()
    output = call("run", file, "--udf", "own_place.py:Word", "--center", "9.5,20", code=2)
    assert "word has none: leave out --center" in output


def test_a_class_that_needs_a_center_gets_it(file, monkeypatch):
    file.with_name("own_need.py").write_text(OWN)
    monkeypatch.chdir(file.parent)
    needs = ["--udf", "own_need.py:Needs"]
    assert (found(file, *needs, "--center", "9.5,20")["needs_place"] == (9.5, 20)).all()
    total = ud.run_udf(open_file(file), SumUDF()).compute()["intensity"]
    place = np.float32(find_center(total))
    assert (found(file, *needs, "--center", "find")["needs_place"] == place).all()
    assert "for needs" in call("explain", file, *needs, "--center", "find")
    positions = ["--udf", "own_need.py:Positions", *UNITS]
    arrays = found(file, *positions, "--center", "0.5mrad,0mrad")
    assert (arrays["positions_place"] == (9, 20)).all()
    for options, message in (
        (needs, "'own_need.py:Needs': required parameters are missing: cy, cx; --center can give"),
        ([*needs, *UNITS, "--center", "0mrad,0mrad"], "write --center in pixels"),
        (["--udf", "own_need.py:Needs:cy=3", "--center", "3,4"], "are missing: cx (own_need"),
        (["--udf", "own_need.py:Needs:3,5", "--center", "3,4"], "needs has a center already"),
    ):
        assert message in call("run", file, *options, code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--center", "9"], "'9' is not a center: write find, com, zero, middle, or Y,X"),
        (["--center", "nan,3"], "is not a center"),
        (["--center", "fnid"], "is not a center"),
        (["--center", "9,3,4"], "is not a center"),
        (["--center", "find"], "sum, sumsig have none: leave out --center"),
        (["--udf", "sum", "--center", "9,3"], "sum has none: leave out --center"),
        (["--detector", "rect,x=1,y=1,width=2,height=2", "--center", "9,3"], "rect has none"),
        (
            ["--udf", "com:cy=1,cx=2", "--udf", "sum", "--center", "find"],
            "com has a center already and sum has none: leave out",
        ),
        (["--udf", "com:cy=1", "--center", "find"], "'com:cy=1' has cy without cx"),
        (["--udf", "com:r=2mrad", "--center", "find"], "com: r=2mrad, but the axis"),
        (["--udf", "com", "--center", "9mrad,2"], "com: cy=9mrad, but the axis"),
        (["--udf", "com:r=3", "--center", "90,2"], "(cy, cx) = (90, 2): correct the center"),
        (["--udf", "com", "--sig-dims", "1", "--center", "find"], "needs frames with two dim"),
        (["--detector", "ring,ri=60,ro=70", "--center", "find"], "no pixel of a frame"),
        (["--udf", "com", "--roi", "9,9", "--center", "find"], "--roi is outside the scan"),
    ],
)
def test_mistakes_are_found_before_a_frame_is_read(file, monkeypatch, options, message):
    def compute(*args, **kwargs):
        raise AssertionError("a frame was read")

    monkeypatch.setattr(center_search, "compute", compute)
    monkeypatch.setattr("udfdask.cli.run_and_report.compute", compute)
    done = CliRunner().invoke(main, ["run", str(file), *options])
    assert done.exit_code in (1, 2), done.output
    assert not isinstance(done.exception, AssertionError)
    assert message in " ".join(done.output.split())


def test_a_ring_that_reaches_the_frame_only_from_the_beam(tmp_path):
    """Around the middle, this ring would be a mistake."""
    y, x = np.indices(SIG)
    frames = np.broadcast_to(200 * np.exp(-np.hypot(y - 3, x - 4) / 4), (3, *SIG))
    np.save(tmp_path / "scan.npy", frames.astype("float32"))
    ring = ["--detector", "ring,ri=22,ro=25"]
    assert "no pixel" in call("run", tmp_path / "scan.npy", *ring, code=1)
    arrays = found(tmp_path / "scan.npy", *ring, "--center", "com")
    assert (arrays["ring_intensity"] > 0).all()


@pytest.mark.parametrize(("value", "word"), [(0, "find"), (-1, "com")])
def test_data_without_a_center(tmp_path, value, word):
    frames = np.full((2, 3, 32, 32), value, "int16")
    frames[..., 0] += 1  # for -1, the sum is negative
    if word == "find":
        frames[:] = np.random.default_rng(1).integers(0, 9, (32, 32))
    np.save(tmp_path / "noise.npy", frames)
    output = call("run", tmp_path / "noise.npy", "--udf", "com", "--center", word, code=1)
    assert f"--center {word} finds no center" in output
    other = "com" if word == "find" else "find"
    assert f"Try --center {other}, or write the center" in output
    assert "mask=" not in output
    assert "method=" not in output


def test_explain_reads_nothing(file, monkeypatch):
    monkeypatch.setattr(center_search, "compute", None)
    output = call(
        "explain", file, "--udf", "com", "--udf", "sum", "--center", "find", "--roi", "0,:"
    )
    assert "center not known yet; a run first finds it in 6 of 30 frames; for com" in output
    disks = ["--detector", "disk,r=5", "--detector", "BF=disk,r=1,cy=8,cx=9", *UNITS]
    output = call("explain", file, *disks, "--center", "find")
    assert "disk, r = 5 px, center not found yet; around y 8, x 20 px, it covers 81 of" in output
    assert "BF: disk, r = 1 px, center y 8, x 9 px, covers 5 of" in output
    assert "disk: the center is the middle of the frame" not in output
    ring = ["--detector", "ring,ri=3,ro=5"]
    assert "note the center is the middle of the frame, y 12, x 16" in call("explain", file, *ring)
    assert "is the middle" not in call("explain", file, *ring, "--center", "find")
    ring = ["--detector", "ring,ri=18,ro=19.5"]
    assert "beyond the edge" in call("explain", file, *ring)
    output = call("explain", file, *ring, "--center", "find")
    assert "center not found yet; around" in output
    assert "beyond the edge" not in output
    output = call("explain", file, "--udf", "com", "--center", "9,20.5")
    assert "center y 9, x 20.5 px; for com data" in output


@given(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2))
def test_numbers_are_read_as_they_are(center):
    y, x = center
    read = to_center(f" {y!r}, {x!r}")
    assert isinstance(read, Center)
    assert (float(read.y), float(read.x)) == (y, x)


@pytest.mark.parametrize("text", ["find", " FIND ", "com"])
def test_words(text):
    assert to_center(text) == CenterSearch(word=text.strip().lower())


@given(
    chunks=st.tuples(*[st.lists(st.integers(1, 4), min_size=1, max_size=4)] * 2),
    limit=st.integers(1, 3000),
    seed=st.integers(0, 3),
)
def test_a_sample_has_whole_chunks_and_a_limited_size(chunks, limit, seed):
    import dask.array as da

    from udfdask.io.opened_file import OpenedFile

    nav = tuple(map(sum, chunks))
    array = da.zeros((*nav, 2, 5), chunks=(*map(tuple, chunks), 2, 5), dtype="uint8")
    axes = tuple(ud.Axis(name=name) for name in "abcd")
    opened = OpenedFile(array=array, sig_dims=2, reader="", title="", axes=axes)
    region = None if not seed else np.random.default_rng(seed).random(nav) < 0.3
    wanted = np.ones(nav, bool) if region is None else region
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(center_search, "MOST_BYTES", limit)
        sample = sampled_positions(opened, region)
    assert not sample[~wanted].any()
    ends = [np.cumsum((0, *sizes)) for sizes in chunks]
    read = []
    for y0, y1 in zip(ends[0], ends[0][1:], strict=False):
        for x0, x1 in zip(ends[1], ends[1][1:], strict=False):
            part = np.s_[y0:y1, x0:x1]
            if sample[part].any():
                np.testing.assert_array_equal(sample[part], wanted[part])
                read.append((y1 - y0) * (x1 - x0) * 10)
    assert sum(read) <= limit or len(read) == 1
    assert sample.any() == wanted.any()
    if limit >= array.nbytes:
        np.testing.assert_array_equal(sample, wanted)


def test_a_sample_is_searched(file, monkeypatch):
    monkeypatch.setattr(center_search, "MOST_BYTES", 1)
    output = call("run", file, "--udf", "com", "--chunks", "1,3,-1,-1", "--center", "find")
    assert "found in 3 of 30 frames" in output


def test_a_center_of_mass_beside_the_beam_is_noted(file):
    note = "note: com measures shifts from the middle of the frame"
    assert note in call("run", file, "--udf", "com:r=12")
    for options in (["--udf", "com:r=12", "--center", "find"], ["--udf", "com:regression=0"], []):
        assert note not in call("run", file, *options)
