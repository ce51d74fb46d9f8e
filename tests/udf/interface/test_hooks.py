"""Points 5 and 6: hooks found by their names, classes that travel, the choice of a method."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import udfdask as ud
from making import NAV, SYNC, compute, make


class SetsAttributes(ud.UDF):
    def __init__(self, a):
        self.before = a + 1
        super().__init__(a=a)
        self.after = self.params.a + 2

    def get_result_buffers(self):
        return {"v": self.buffer(kind="nav", extra_shape=(self.after,))}

    def process_frame(self, frame):
        self.results.v[:] = self.before * 10 + self.after


@pytest.mark.point(5)
@pytest.mark.parametrize("scheduler", ["synchronous", "processes"])
def test_attributes_of_init(x, scheduler):
    done = ud.run_udf(x, SetsAttributes(1)).compute(scheduler=scheduler)
    assert done["v"].shape == (*NAV, 3)
    assert (done["v"] == 23).all()


@pytest.mark.full
@pytest.mark.point(5)
def test_mixins_and_lambdas_made_in_a_function(x):
    """Cooperative declarations, hooks found by name; all of it travels to other processes."""

    class Sums:
        def get_result_buffers(self):
            return {**super().get_result_buffers(), "s": self.buffer(kind="nav")}

    class Tops:
        def get_result_buffers(self):
            return {"t": self.buffer(kind="nav")}

        def postprocess(self):
            self.results.t += 1

    class Both(Sums, Tops, ud.UDF):
        def process_frame(self, frame):
            self.results.s = self.params.f(frame.sum())
            self.results.t = frame.max()

    done = ud.run_udf(x, Both(f=lambda v: -v)).compute(scheduler="processes", num_workers=2)
    data = x.compute(**SYNC)
    np.testing.assert_allclose(done["s"], -data.sum(axis=(2, 3)))
    np.testing.assert_array_equal(done["t"], data.max(axis=(2, 3)) + 1)


@pytest.mark.point(5)
def test_mixins_behind_the_base_class(x):
    """A default of UDF hides no method of a class that stands behind it."""

    class Declares:
        def get_result_buffers(self):
            return {"v": self.buffer(kind="nav"), "o": self.buffer(kind="single")}

    class Hooks:
        def preprocess(self):
            self.results.v[:] = 1

        def postprocess(self):
            self.results.v += 10
            self.results.o += 1

        def merge(self, dest, src):
            dest.v[:] = src.v
            dest.o += src.o

    class Late(ud.UDF, Hooks, Declares):
        def process_frame(self, frame):
            self.results.v += 100

    class Later(Late):
        def postprocess(self):
            super().postprocess()
            self.results.v += 1000

    for cls, value in ((Late, 111), (Later, 1111)):
        done = ud.run_udf(x, cls()).compute(scheduler="threads")
        assert (done["v"] == value).all()
        assert done["o"] == 4


@pytest.mark.point(5, 31)
def test_the_protocol_classes_as_bases(x):
    """Ported code inherits from them; they say what there is and do nothing."""

    class Annotated(
        ud.UDFTileMixin, ud.UDFPreprocessMixin, ud.UDFPostprocessMixin, ud.UDFMergeAllMixin, ud.UDF
    ):
        def __init__(self, a=1):
            super().__init__(a=a)

        def get_result_buffers(self):
            return {"v": self.buffer(kind="sig", dtype="float64")}

        def preprocess(self):
            self.results.v[:] = 0

        def process_tile(self, tile):
            self.results.v += tile.sum(axis=0)

        def postprocess(self):
            self.results.v *= self.params.a

        def merge_all(self, ordered_results):
            return {"v": np.sum([p.v for p in ordered_results.values()], axis=0)}

    udf = Annotated(2)
    assert isinstance(udf, ud.UDFTileMixin)
    assert isinstance(make({}, process_frame=lambda self, frame: None)(), ud.UDFFrameMixin)
    assert not isinstance(udf, ud.UDFPartitionMixin)
    np.testing.assert_allclose(compute(x, udf)["v"], 2 * x.sum(axis=(0, 1)).compute(**SYNC))


@pytest.mark.full
@pytest.mark.point(5)
def test_classes_of_a_notebook_travel(tmp_path):
    """A notebook's classes live in __main__, which no other process can import."""
    script = tmp_path / "notebook.py"
    script.write_text(
        "import dask.array as da\n"
        "import udfdask as ud\n"
        "class Base:\n"
        "    def get_result_buffers(self):\n"
        "        return {'v': self.buffer(kind='nav')}\n"
        "class Mine(Base, ud.UDF):\n"
        "    def process_frame(self, frame):\n"
        "        self.results.v[:] = self.params.f(frame.sum())\n"
        "if __name__ == '__main__':\n"
        "    x = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))\n"
        "    done = ud.run_udf(x, Mine(f=lambda v: v + 1)).compute(\n"
        "        scheduler='processes', num_workers=1)\n"
        "    print(done['v'].sum())\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[3],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    assert done.stdout.strip() == "102.0", done.stderr


METHODS = ["process_tile", "process_frame", "process_partition"]


@pytest.mark.point(6)
@pytest.mark.parametrize("first", [0, 1, 2])
def test_tile_before_frame_before_partition(x, first):
    ran = set()
    methods = {name: lambda self, data, name=name: ran.add(name) for name in METHODS[first:]}
    compute(x, make({"v": {"kind": "nav"}}, **methods)())
    assert ran == {METHODS[first]}


@pytest.mark.point(6)
@pytest.mark.parametrize("name", ["TILE", "FRAME", "PARTITION"])
def test_get_method_chooses(x, name):
    ran = set()
    methods = {n: lambda self, data, n=n: ran.add(n) for n in METHODS}

    def get_method(self):
        assert self.meta.input_dtype == np.float32
        return getattr(self.UDF_METHOD, self.params.name)

    compute(x, make({"v": {"kind": "nav"}}, get_method=get_method, **methods)(name=name))
    assert ran == {f"process_{name.lower()}"}
    assert ud.UDF.UDF_METHOD is ud.UDFMethod


@pytest.mark.point(1)
def test_repr_is_short():
    udf = ud.UDF(a=np.zeros((3, 4)), b=np.float32, c="x" * 99)
    assert repr(udf).startswith("UDF(a=<ndarray (3, 4) float64>, b=<class 'numpy.float32'>, c='xxx")
    assert len(repr(udf)) < 130
