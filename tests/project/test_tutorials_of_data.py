"""The notebooks on first steps, DPC, spectra and events say what is true."""

import os
import re

import pytest

from kernels import Page, pictures, texts

pytestmark = pytest.mark.full

REAL = os.environ.get("UDFDASK_TEST_DATA")

# Run after the last cell, in the kernel: what the notebook says, against plain NumPy.
LAWS = {
    "1-first-look": """
        frames = scan.array.compute().astype("float64")
        k = np.arange(64) - 32
        distance = np.hypot(k[:, None], k)  # in mrad
        bf = frames[..., distance <= 6].sum(axis=-1)
        adf = frames[..., (distance > 9) & (distance <= 30)].sum(axis=-1)
        np.testing.assert_array_equal(total["intensity"], frames.sum(axis=(0, 1)))
        np.testing.assert_array_equal(images["BF"]["intensity"], bf)
        np.testing.assert_array_equal(images["ADF"]["intensity"], adf)
        np.testing.assert_array_equal(peak["peak"], frames.max(axis=(2, 3)))
        np.testing.assert_array_equal(part["intensity"].compute()[20:40, 15:40], adf[20:40, 15:40])
        np.testing.assert_array_equal(electrons, frames.sum(axis=(2, 3)))
        # a particle is dark in both images, and bright in the share of the dark field
        on, off = np.s_[12:17, 13:18], np.s_[:4, 32:40]
        assert bf[on].mean() < bf[off].mean() and adf[on].mean() < adf[off].mean()
        assert (bf / electrons)[on].mean() < (bf / electrons)[off].mean()
        assert (adf / electrons)[on].mean() > (adf / electrons)[off].mean()
        # both precession patterns have their brightest disk at the center
        pattern = precession.array.sum(axis=(0, 1)).compute()
        brightest = np.argwhere(pattern > 0.8 * pattern.max()).mean(axis=0)
        assert np.abs(brightest - (cy, cx)).max() < 3
    """,
    "2-virtual-detectors-and-dpc": """
        assert np.argwhere(broken).tolist() == [[28, 37]]
        assert np.abs(plane - wander).max() < 0.2
        patched = frames.astype("float64")
        around = patched[:, :, 27:30, 36:39].sum(axis=(2, 3)) - patched[:, :, 28, 37]
        patched[:, :, 28, 37] = around / 8
        moved = np.stack([
            [shift(patched[i, j], -plane[i, j], order=1) for j in range(64)] for i in range(48)
        ])
        k = np.indices((64, 64))
        distance = np.hypot(k[0] - cy, k[1] - cx)
        for name, (low, high) in {
            "BF": (-1, 5), "annular BF": (2.5, 5), "first ring": (9, 19)
        }.items():
            expected = moved[..., (distance > low) & (distance <= high)].sum(axis=-1)
            np.testing.assert_allclose(images[name]["intensity"], expected, rtol=1e-4)
        disk = distance <= 8
        inner = moved * disk
        com = [(inner * k[i]).sum(axis=(2, 3)) / inner.sum(axis=(2, 3)) for i in (0, 1)]
        np.testing.assert_allclose(dpc["raw_com"], np.stack(com, axis=-1), rtol=1e-4)
        slopes = [np.gradient(field[..., i], 0.5, axis=i) for i in (0, 1)]
        np.testing.assert_allclose(dpc["divergence"], sum(slopes), atol=1e-9)
        # the beam is deflected to the middle of the first particle
        assert field[14, 10, 1] > 0.3 and field[14, 20, 1] < -0.3
        assert field[9, 15, 0] > 0.3 and field[19, 15, 0] < -0.3
        assert dpc["divergence"][12:17, 13:18].mean() < 0
        assert (guess.scan_rotation, guess.flip_y) == (0, False)
        assert np.std(dpc["curl"]) < 0.5 * np.std(dpc["divergence"])
        # the field is the slope of the phase, apart from noise
        slope = 1e3 * wavelength / (2 * np.pi) * np.stack(np.gradient(phase, 0.5), axis=-1)
        assert np.corrcoef(slope.ravel(), field.ravel())[0, 1] > 0.9
        assert phase[14, 15] > 2
    """,
    "3-eds-and-eels-maps": """
        data = recording.array.compute().astype("float64")
        keV = energy_axis.positions(2048)
        def counted(data, axis, low, high):
            return data[..., (axis >= low) & (axis < high)].sum(axis=-1)
        def net(line):
            sides = [energies[f"{line}, {side}"] for side in ("left", "right")]
            return counted(data, keV, *energies[line]) - sum(counted(data, keV, *s) for s in sides)
        np.testing.assert_array_equal(aluminum, net("Al"))
        np.testing.assert_array_equal(silver, net("Ag"))
        channels = {name: ((keV >= a) & (keV < b)).sum() for name, (a, b) in energies.items()}
        assert channels["Al"] == channels["Al, left"] + channels["Al, right"] == 18
        assert channels["Ag"] == channels["Ag, left"] + channels["Ag, right"] == 18
        np.testing.assert_allclose(inside, data[much_al].mean(axis=0))
        np.testing.assert_allclose(outside, data[~much_al].mean(axis=0))
        # aluminum at the left, silver at the right
        assert aluminum[:, :10].mean() > 1.5 * aluminum[:, -10:].mean()
        assert silver[:, -10:].mean() > 3 * silver[:, :10].mean()
        assert energy_map.data[:, :10].mean() < energy_map.data[:, -10:].mean()
        by_hyperspy = signal.isig[1.40:1.58].data.sum(axis=-1)
        np.testing.assert_array_equal(image.data, np.asarray(by_hyperspy))
        weighted = (keV[first:last] * data[3, 4, first:last]).sum() / data[3, 4, first:last].sum()
        np.testing.assert_allclose(energy_map.data[3, 4], weighted, rtol=1e-6)
        np.testing.assert_array_equal(saved.data, aluminum)
        assert saved.axes_manager[0].units == "µm"
        for there, here in zip(saved.axes_manager._axes, image.axes_manager._axes, strict=True):
            np.testing.assert_allclose(there.axis, here.axis)
        assert not np.array_equal(image.data, saved.data)  # the copy has data of its own

        def above(before, after):
            (e1, e2), (a, b) = before, after
            halves = (e1, (e1 + e2) / 2), ((e1 + e2) / 2, e2)
            i1, i2 = (counted(spectra, loss, *half) for half in halves)
            s = 1 - 2 * np.log(i1 / i2) / np.log(e2 / e1)
            return counted(spectra, loss, a, b) - (i1 + i2) * (b**s - a**s) / (e2**s - e1**s)
        np.testing.assert_allclose(titanium, above((406, 454), (454, 478)), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(oxygen, above((484, 526), (530, 560)), rtol=1e-6, atol=1e-6)
        # no titanium outside of the particles, and the counts of the edge inside
        outside_particles, inside_particles = particles < 0.01, particles > 0.9
        edge_counts = counted(ti_spectrum, loss, 454, 478)
        assert abs(titanium[outside_particles].mean()) < 0.03 * edge_counts
        assert abs(titanium[inside_particles].mean() / edge_counts - 1) < 0.1
    """,
    "4-events": """
        assert round(counts.sum(axis=(2, 3)).mean(), -1) == 570
        assert 10 < counts.nbytes / stored < 12
        k = (np.arange(128) - 64) * 0.5
        distance = np.hypot(k[:, None], k)  # in mrad
        bf = counts[..., distance <= 6].sum(axis=-1)
        adf = counts[..., (distance > 8) & (distance <= 31)].sum(axis=-1)
        np.testing.assert_array_equal(results["sum"]["intensity"], counts.sum(axis=(0, 1)))
        np.testing.assert_array_equal(results["BF"]["intensity"], bf)
        np.testing.assert_array_equal(results["ADF"]["intensity"], adf)
        disk = counts * (distance <= 7)
        com = (disk * k[:, None]).sum(axis=(2, 3)) / disk.sum(axis=(2, 3))
        np.testing.assert_allclose(results["DPC"]["field_y"], com, atol=1e-9)
        loaded = events[3, 5].compute()
        np.testing.assert_array_equal(loaded.todense(), counts[3, 5])
        np.testing.assert_array_equal(same, counts.sum(axis=(0, 1)))
        from udfdask.udfs import ApplyMasksUDF, PickUDF, StdDevUDF, SumSigUDF
        stay_sparse = [SumSigUDF(), StdDevUDF(), ApplyMasksUDF([distance < 9]), PickUDF()]
        for udf in (*udfs.values(), *stay_sparse):
            assert "numpy" not in str(ud.explain(events, udf, **options)), udf
        assert "given numpy" in str(ud.explain(events, LogsumUDF()))
    """,
}
WITH_RECORDING = ("1-first-look", "3-eds-and-eels-maps")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return a function that executes a notebook, once with each folder of recordings."""
    done = {}

    def page(name, recordings):
        if (name, recordings) not in done:
            folder = tmp_path_factory.mktemp("notebook")
            laws = "\n".join(line[8:] for line in LAWS[name].splitlines())
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("UDFDASK_TEST_DATA", recordings or str(folder))
                done[name, recordings] = Page(name, folder, laws)
        return done[name, recordings]

    return page


@pytest.fixture(
    params=[(name, False) for name in LAWS] + [(name, True) for name in WITH_RECORDING],
    ids=lambda param: param[0] + ("-recording" if param[1] else ""),
)
def page(request, pages):
    name, with_recording = request.param
    if with_recording and REAL is None:
        pytest.skip("UDFDASK_TEST_DATA names no folder of recordings")
    return pages(name, REAL if with_recording else None)


def test_runs_without_warnings(page):
    """The laws ran in the same kernel, and printed nothing."""
    assert page.values == []
    streams = [one for one in page.all_outputs() if one["output_type"] == "stream"]
    assert [one["text"] for one in streams if one["name"] != "stdout"] == []


def test_each_figure_is_a_picture(page):
    for output in page.all_outputs():
        data = output.get("data", {})
        if "".join(data.get("text/plain", "")).startswith("<Figure"):
            assert "image/png" in data


def test_the_last_output_is_a_picture_with_contents(page):
    (picture,) = pictures(page.cells[-1]["outputs"])
    height, width = picture.shape[:2]
    assert width > 600
    assert height > 250
    assert picture[..., :3].std() > 0.1


def opened_files(page):
    """The descriptions of opened files that the cells show."""
    shown = [one["data"].get("text/plain", "") for one in page.all_outputs() if "data" in one]
    return [text for text in map("".join, shown) if text.startswith("<OpenedFile")]


@pytest.mark.parametrize("name", WITH_RECORDING)
def test_a_recording_is_used_if_there_is_one(name, pages):
    assert "'twin'" in opened_files(pages(name, None))[-1]
    if REAL is None:
        pytest.skip("UDFDASK_TEST_DATA names no folder of recordings")
    assert "'twin'" not in opened_files(pages(name, REAL))[-1]


def test_the_notebook_on_events_prints_what_it_compares(pages):
    page = pages("4-events", None)
    equal = texts(page.shown_by("from_dense[name][buffer]"))
    assert re.findall(r"True|False", equal) == ["True"] * 4
    assert len(re.findall(r"[0-9.]+ times less", texts(page.shown_by("def seconds")))) == 3
