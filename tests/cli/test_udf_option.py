"""``--udf name:parameter=value``: what it means, and how it is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from commands import call, results_of
from udfdask import udfs
from udfdask.cli.udf_option import read_settings, to_udf
from udfdask.masks import DiskTemplate


@pytest.fixture
def folder(tmp_path, file, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_in_front(folder, values):
    udfs_by_name = ("--udf", "BF=disk:r=3", "--udf", "sum=com:r=5", "--udf", "all = disk:r=9")
    arrays = results_of(*udfs_by_name, "--udf", "sum", "--udf", "sum")
    plain = results_of("--udf", "disk:r=3", "--udf", "disk:r=9", "--udf", "com:r=5")
    np.testing.assert_array_equal(arrays["BF_intensity"], plain["disk_intensity"])
    np.testing.assert_array_equal(arrays["all_intensity"], plain["disk_2_intensity"])
    np.testing.assert_array_equal(arrays["sum_raw_com"], plain["com_raw_com"])
    for name in ("sum_2_intensity", "sum_3_intensity"):  # the name `sum` is that of the user
        np.testing.assert_array_equal(arrays[name], values.sum((0, 1)))


def test_a_name_in_front_is_given_once(folder):
    options = ["--udf", "BF=disk:r=3", "--udf", "BF=disk:r=4"]
    assert "two UDFs are called 'BF'" in call("run", "scan.npy", *options, code=2)


# What to type, and the object that is meant.
EXAMPLES = {
    "applymasks": ("mask_factories=masks.npy", lambda: udfs.ApplyMasksUDF(load_masks)),
    "auto": ("f=numpy:max", lambda: udfs.AutoUDF(np.max)),
    "com": ("cy=4.5,cx=6,r=5,flip_y=true", lambda: udfs.CoMUDF(cy=4.5, cx=6, r=5, flip_y=True)),
    "correlation": (
        "peaks=[[5,6],(4,8)],template=3,steps=2,log_scale=False",
        lambda: udfs.CorrelationUDF(
            [[5, 6], (4, 8)], DiskTemplate(radius=3), steps=2, log_scale=False
        ),
    ),
    "fem": ("center=(5,6),rad_in=1,rad_out=inf", lambda: udfs.FEMUDF((5, 6), 1, np.inf)),
    "neighboraverage": (
        "window=gaussian,shape=5,std=1.5",
        lambda: udfs.NeighborAverageUDF("gaussian", shape=5, std=1.5),
    ),
    "noop": ("preferred_input_dtype=float32", lambda: udfs.NoOpUDF("float32")),
    "record": ("filename=rec.npy", lambda: udfs.RecordUDF("other.npy")),
    "sum": ("dtype=int32", lambda: udfs.SumUDF("int32")),
    "virtualdetector": (
        "shape=ring, ri=2, ro=5",
        lambda: udfs.VirtualDetectorUDF("ring", ri=2, ro=5),
    ),
}


def load_masks():
    return np.load("masks.npy")


@pytest.mark.parametrize("name", EXAMPLES)
def test_results_are_those_of_the_class(folder, values, name):
    settings, make = EXAMPLES[name]
    np.save("masks.npy", np.random.default_rng(1).random((3, 10, 12)))
    got = results_of("--udf", f"{name}:{settings}")
    expected = ud.run_udf(
        ud.io.open_file("scan.npy", chunks=(3, 4, -1, -1)).array, make()
    ).compute()
    # positions along extra dimensions, such as radii, are arrays of their own
    extra = {axis.name for axes in expected.extra_axes.values() for axis in axes}
    assert {key for key in got if key not in extra} == {f"{name}_{buffer}" for buffer in expected}
    for buffer, array in expected.items():
        np.testing.assert_array_equal(got[f"{name}_{buffer}"], array, err_msg=buffer)


@pytest.mark.full
def test_a_function_out_of_a_file(folder, values):
    (folder / "mine.py").write_text("def peak(frame):\n    return frame.max()\n")
    got = results_of("--udf", "auto:f=mine.py:peak", "--scheduler", "processes")
    np.testing.assert_array_equal(got["auto_result"], values.max(axis=(2, 3)))


@pytest.mark.parametrize("name", ["radial-profile", "RadialProfileUDF"])
def test_other_spellings(name):
    assert type(to_udf(name).udf) is udfs.RadialProfileUDF


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("con", "virtualdetector; did you mean 'com'"),
        ("com:radius=3", "keyword argument 'radius' (com takes cy, cx, r, ri, scan_rotation"),
        ("com:r=3,r=4", "'r' is given twice"),
        ("com:5,cy=4", "'5' has no name: write parameter=value"),
        ("com:r=abc", "r must be a number of pixels, not 'abc' of type str"),
        ("fem:center=(8,8,rad_in=2", "'(8,8' cannot be read"),
        ("pick:a=3", "keyword argument 'a' (pick takes no parameters)"),
        ("correlation:peaks=no.npy,template=3,steps=2", "there is no file 'no.npy'"),
        ("auto:f=3", "a function of a frame (on the command line f=numpy:max"),
        ("auto:f=numpy:nothing", "has no attribute 'nothing'"),
    ],
)
def test_what_is_refused(folder, text, message):
    output = call("run", "scan.npy", "--udf", text, code=2)
    assert "Invalid value for '--udf'" in output
    assert message in output


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]_[a-z0-9_]{0,8}", fullmatch=True),
        st.one_of(
            st.integers(),
            st.floats(allow_nan=False),
            st.booleans(),
            st.none(),
            st.lists(st.tuples(st.integers(), st.floats(allow_nan=False, allow_infinity=False))),
            st.text("abc,([ ", max_size=5).filter(lambda t: t not in ("", "none")).map(repr),
        ),
    )
)
def test_what_is_written_is_read(settings):
    """Python's own way of writing values is understood."""
    written = ", ".join(
        f"{name}={value if isinstance(value, str) else repr(value)}"
        for name, value in settings.items()
    )
    meant = {n: v[1:-1] if isinstance(v, str) else v for n, v in settings.items()}
    read = read_settings(written)
    assert list(read) == list(meant)
    assert read == meant


def test_masks_for_regions(folder, values):
    mask = np.random.default_rng(0).random((6, 8)) > 0.5
    np.save("mask.npy", mask)
    got = results_of("--udf", "sum", "--roi", "mask.npy")
    np.testing.assert_array_equal(got["sum_intensity"], values[mask].sum(axis=0))
