"""The notebooks on own UDFs, neighborhoods, live plots and clusters say what is true."""

import re

import numpy as np
import pytest

from kernels import Page, pictures, texts
from udfdask.plotting.drawing import MISSING

pytestmark = pytest.mark.full

# Run after the last cell: the numbers that the tests below look at, one per line.
MORE = {
    "5-write-a-udf": """
        frames = scan.compute().astype("float64")
        outside = np.hypot(*(np.indices((48, 48)) - 24)) > 6
        shares = frames[..., outside].sum(axis=-1) / frames.sum(axis=(2, 3))
        print(np.abs(scattered - shares).max())
        print(np.abs(on["pattern"] - frames[particles].mean(axis=0)).max())
        print(np.abs(beside["pattern"] - frames[~particles].mean(axis=0)).max())
        print(change[22:27, 22:27].max(), change[22:27, 22:27].min())
    """,
    "6-neighborhoods": """
        frames = scan.compute().astype("float64")
        mean = frames[18:21, 29:32].mean(axis=(0, 1))
        print(np.abs(average[19, 30].compute() - mean).max())
        print(error)
        smooth_frames = average[18:21, 29:32].compute()
        disk_of = np.hypot(*(np.indices((48, 48)) - 24)) <= 6
        def place(frame, axis):
            weights = frame * disk_of
            return (weights * (np.indices((48, 48)) - 24)[axis]).sum() / weights.sum()
        expected_divergence = place(smooth_frames[2, 1], 0) - place(smooth_frames[0, 1], 0)
        expected_divergence += place(smooth_frames[1, 2], 1) - place(smooth_frames[1, 0], 1)
        print(abs(divergence[19, 30] - expected_divergence))
        def steepest(total):
            # away from the borders that some images do not reach
            return np.abs(np.diff(total["intensity"][12:-12, 12:-12].astype(float), axis=0)).max()
        print(steepest(sharp) / steepest(blurred))
    """,
    "7-live-plots": """
        frames = scan.compute().astype("float64")
        distance = np.hypot(*(np.indices((48, 48)) - 24))
        ring = (distance > 6) & (distance <= 16)
        print(np.abs(image - frames[..., ring].sum(axis=-1)).max())
        print(np.abs(total["intensity"] - frames.sum(axis=(0, 1))).max())
        print((used == 2).sum())
    """,
    "8-laptop-to-cluster": """
        print(np.abs(deviation["std"] - recording.compute().std(axis=(0, 1))).max())
        print(done[0], first.size, int(second.sum()), done[-1])
        print(int((first > 1).sum()), int((second > 1).sum()))
        print(int(((first == 0) & (second == 0)).sum()))
        print(temporary.name, Path(temporary.name).exists())
        print(client.status, cluster.status.name)
    """,
}


def unindented(code):
    return "\n".join(line[8:] for line in code.splitlines())


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Notebooks that have been executed, each once."""
    done = {}

    def page(name):
        if name not in done:
            done[name] = Page(name, tmp_path_factory.mktemp("notebook"), unindented(MORE[name]))
        return done[name]

    return page


@pytest.mark.parametrize("name", MORE)
class TestEach:
    def test_nothing_is_written_to_stderr(self, pages, name):
        outputs = pages(name).all_outputs()
        noise = [one for one in outputs if one.get("name") == "stderr"]
        assert not noise
        assert "Warning" not in texts(outputs)

    def test_the_last_output_is_a_picture(self, pages, name):
        (picture,) = pictures(pages(name).cells[-1]["outputs"])
        height, width = picture.shape[:2]
        assert min(height, width) > 200
        # not only axes on an empty ground
        assert picture[..., :3].std() > 0.1
        assert (picture[..., :3].min(axis=-1) < 0.95).mean() > 0.2

    def test_most_cells_with_results_show_a_picture(self, pages, name):
        assert len(pictures(pages(name).all_outputs())) >= 5

    def test_no_cell_shows_a_python_object(self, pages, name):
        """A forgotten semicolon shows `<matplotlib.colorbar.Colorbar at 0x...>`."""
        plain = [one.get("data", {}).get("text/plain", "") for one in pages(name).all_outputs()]
        assert not [text for text in map("".join, plain) if " at 0x" in text or text[:1] == "["]


class TestWriteAUDF:
    name = "5-write-a-udf"

    def test_the_numbers_are_those_of_numpy(self, pages):
        scattered, on, beside, center = pages(self.name).values
        assert float(scattered) < 1e-6
        assert float(on) < 1e-9
        assert float(beside) < 1e-9
        # "about a third fewer counts"
        assert all(-40 < float(change) < -25 for change in center.split())

    def test_both_udfs_agree_and_are_checked(self, pages):
        page = pages(self.name)
        assert "equal: True" in texts(page.shown_by("tiles.explain()"))
        assert texts(page.shown_by("few = scan")).count("keeps 25 laws") == 2
        assert "frames: 2080\nequal: True" in texts(page.shown_by("corrected = "))

    def test_the_wrong_merge_is_found(self, pages):
        page = pages(self.name)
        assert "50% of the counts" in texts(page.shown_by("class WrongMeanUDF"))
        assert "merge is not associative" in texts(page.shown_by("check_udf(WrongMeanUDF())"))
        assert "Implement merge" in texts(page.shown_by("class WithoutMerge"))

    def test_one_pass_reads_each_chunk_once(self, pages):
        assert "9 chunks for 3 UDFs: 9 reads" in texts(pages(self.name).shown_by("def note"))


class TestNeighborhoods:
    name = "6-neighborhoods"

    def test_the_numbers_are_those_of_numpy(self, pages):
        average, drift, divergence, slope = map(float, pages(self.name).values)
        assert average < 1e-5
        assert drift < 0.6
        assert divergence < 1e-4
        # edges of disks are steeper without blur
        assert slope > 1.2

    def test_noise_falls_with_the_square_root(self, pages):
        shown = texts(pages(self.name).shown_by("windows = "))
        one, nine, twenty_five = map(float, re.findall(r"deviation (\S+)", shown))
        assert one / nine == pytest.approx(3, rel=0.25)
        assert one / twenty_five == pytest.approx(5, rel=0.35)

    def test_the_ends_of_the_scan_have_no_result(self, pages):
        shown = texts(pages(self.name).shown_by("DivergenceUDF(radius=6))\ndivergence"))
        assert shown.strip() == f"positions without a result: {2 * 40 + 2 * 48 - 4}"


class TestLivePlots:
    name = "7-live-plots"

    def test_plans_and_results_are_tables(self, pages):
        page = pages(self.name)
        for code, word in (("ud.explain(", "Plan"), ("center = ud.run_udf", "Result of CoMUDF")):
            (one,) = page.shown_by(code)
            assert word in "".join(one["data"]["text/html"])

    def test_a_live_plot_is_one_picture_that_was_replaced(self, pages):
        from matplotlib.colors import to_rgb

        outputs = pages(self.name).shown_by("plots=[[")
        (picture,) = pictures(outputs)
        assert texts(outputs).strip() == "100% of the scan, 24 chunks"
        height, width = picture.shape[:2]
        assert width > 1.5 * height
        # nothing is missing any more: it is the last state that is seen
        assert not np.isclose(picture[..., :3], to_rgb(MISSING), atol=0.01).all(axis=-1).any()
        assert picture[..., :3].std() > 0.1

    def test_the_progress_bar_counts_frames(self, pages):
        outputs = pages(self.name).shown_by("progress=True")
        # a widget where ipywidgets is installed, else a line of text
        widgets = [mime for one in outputs for mime in one.get("data", {}) if "widget" in mime]
        assert widgets or "1.73k/1.73k" in texts(outputs)
        assert "equal: True" in texts(outputs)
        callback = texts(pages(self.name).shown_by("finished_chunks = []"))
        assert callback.strip() == "finished chunks: 0 at the start, 24 at the end"

    def test_a_run_is_stopped_early(self, pages):
        assert "Stopped early: True" in texts(pages(self.name).shown_by("run.close()"))

    def test_the_numbers_are_those_of_numpy(self, pages):
        ring, total, old = map(float, pages(self.name).values)
        assert ring == 0
        assert total == 0
        # at least the eight chunks of 72 frames before the change, and not all
        assert 8 * 72 <= old < 36 * 48
        assert "[2 6] pixels" in texts(pages(self.name).shown_by("used = inner_radius"))


class TestLaptopToCluster:
    name = "8-laptop-to-cluster"

    def test_results_are_equal_to_the_last_bit(self, pages):
        shown = texts(pages(self.name).all_outputs())
        assert shown.count("equal to the last bit: True") == 3
        assert "False" not in shown
        assert float(pages(self.name).values[0]) < 1e-4

    def test_the_worker_process_ends_during_the_run(self, pages):
        shown = texts(pages(self.name).shown_by('write_text("end the process")'))
        reads = int(re.search(r"(\d+) reads of 48 chunks", shown)[1])
        assert 49 <= reads < 2 * 48

    def test_only_what_is_not_in_the_cache_is_read_again(self, pages):
        _, counts, twice, never, *_ = pages(self.name).values
        in_cache, chunks, read, at_the_end = map(int, counts.split())
        assert chunks == at_the_end == 48
        assert 0 <= in_cache < 48
        assert read == chunks - in_cache
        assert twice == "0 0"
        assert never == "0"
        failed = texts(pages(self.name).shown_by('write_text("the disk was unplugged")'))
        assert "The run failed: the disk was unplugged" in failed

    def test_everything_is_closed(self, pages):
        *_, folder, status = pages(self.name).values
        assert folder.endswith("False")
        assert status == "closed closed"
