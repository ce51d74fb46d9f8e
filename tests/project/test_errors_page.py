"""docs/errors.md has each public error class, and quotes messages that the code still has."""

import ast
import builtins
import inspect
import re
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
import udfdask.dask
from making import make
from udfdask import errors, save_results
from udfdask.corrections import CorrectionSet
from udfdask.io import open_file
from udfdask.udfs import CoMUDF, SumUDF, VirtualDetectorUDF

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "errors.md"


def read_tables():
    """The rows of each section of the page, without the headings of its table."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    tables = {}
    for section in sections:
        title, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        tables[title] = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    return tables


TABLES = read_tables()
CLASSES = dict(inspect.getmembers(errors, inspect.isclass))
OTHERS = {"Classes", "Messages of Python and dask"}
QUOTED = [row[0] for title, rows in TABLES.items() if title not in OTHERS for row in rows]


@pytest.fixture(scope="module")
def texts():
    """All texts in the code but docstrings; a zero character is what is filled in later."""
    found = []
    for file in (ROOT / "udfdask").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", None) for part in node.values]
                found.append("".join(one if isinstance(one, str) else "\0" for one in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_each_class_has_a_row():
    rows = {name.strip("`"): base.strip("`") for name, base, _ in TABLES["Classes"]}
    assert rows.keys() == {cls.__name__ for cls in CLASSES.values()}
    assert rows.keys() == {n for n in ud.__all__ if n.endswith(("Error", "Warning", "Cancelled"))}


def test_classes_are_what_their_rows_say():
    known = {**vars(builtins), **CLASSES}
    for name, base, _ in TABLES["Classes"]:
        assert issubclass(CLASSES[name.strip("`")], known[base.strip("`")]), name


OF_PYTHON = {"`object has no attribute 'udf'`"}
"""Messages on the page that Python itself makes."""


def test_each_quoted_message_is_in_the_code(texts):
    assert len(QUOTED) >= 50
    assert set(QUOTED) >= OF_PYTHON
    parts = [re.fullmatch(r"`(.+)`", cell)[1] for cell in QUOTED if cell not in OF_PYTHON]
    assert [part for part in parts if part not in texts] == []


def test_each_message_is_there_once_with_cause_and_cure():
    assert len(set(QUOTED)) == len(QUOTED)
    for rows in TABLES.values():
        assert all(len(row) == 3 and all(row) for row in rows)


X = da.zeros((4, 6, 8, 8), chunks=(2, 6, 8, 8), dtype="float32")
MASKED = X.map_blocks(np.ma.asarray, meta=np.ma.empty((0,) * 4, "float32"))
DISK = np.hypot(*np.ogrid[-4:4, -4:4]) < 3


def udf(buffers, **methods):
    methods.setdefault("process_frame", lambda self, frame: None)
    return make(buffers, **methods)()


def run(udf=None, array=X, **options):
    """Run until the first value is there."""
    ud.run_udf(array, SumUDF() if udf is None else udf, **options).compute(scheduler="synchronous")


def changed(folder):
    np.save(folder / "scan.npy", np.zeros((4, 6, 8, 8)))
    opened = open_file(folder / "scan.npy")
    np.save(folder / "scan.npy", np.zeros((4, 6, 8, 9)))
    run(array=opened)


def raw(folder, **arguments):
    (folder / "scan.raw").write_bytes(bytes(1000))
    open_file(folder / "scan.raw", **arguments)


def twice(folder):
    for _ in range(2):
        ud.run_udf(X, SumUDF()).to_zarr(folder / "sum.zarr")


def unknown_data(folder):
    h5py = pytest.importorskip("h5py", reason="the extra io brings it")
    with h5py.File(folder / "scan.h5", "w") as file:
        array = da.from_array(file.create_dataset("frames", data=np.ones((4, 6, 8, 8))))
        ud.run_udf(array, SumUDF()).compute(cache=folder / "cache")


def lazy_signal(folder):
    hs = pytest.importorskip("hyperspy.api", reason="the extra hyperspy brings it")
    import udfdask.hyperspy  # noqa: F401

    signal = hs.signals.Signal2D(X).as_lazy()
    signal.udf.run_udf(SumUDF(), roi=signal.sum("sig") > 5)


ENERGIES = [*(ud.Axis(name=name) for name in "xyz"), ud.Axis(name="E", unit="eV")]


def with_nothing():
    class Empty(ud.UDF):
        def get_result_buffers(self):
            return {}

    return Empty()


def region_of_hyperspy(_):
    class CircleROI:
        __module__ = "hyperspy.roi"

    return run(roi=CircleROI())


MISTAKES = {
    "expected a dask array of shape (*nav, *sig), got": lambda _: run(array=np.zeros((2, 2))),
    "sig_dims must be between 1 and": lambda _: run(sig_dims=9),
    "expected an instance of a UDF, got the class": lambda _: run(SumUDF),
    "a plain function runs with map_frames(array, func)": lambda _: ud.run_udf(np.max, X),
    "the array has unknown chunk sizes, shape": lambda _: run(array=X[X.sum(axis=(1, 2, 3)) > 0]),
    "masked arrays are not supported": lambda _: run(array=MASKED),
    "has no argument": lambda _: X.udf.run_udf(SumUDF(), sigdims=2),
    "has no effect as an attribute, it is a promise": lambda _: run(
        udf({"v": {"kind": "nav"}}, adds_signal_parts=True)
    ),
    "but the navigation shape of the data is": lambda _: run(roi=np.ones((6, 4), bool)),
    "the roi is a lazy dask collection": lambda _: run(roi=X.sum(axis=(2, 3)) > 0),
    "regions and masks of HyperSpy are for the run of a signal": region_of_hyperspy,
    "the roi is a list of positions": lambda _: run(roi=[(0, 1), (2, 3)]),
    "as a roi;": lambda _: run(roi=np.full((4, 6), "yes")),
    "and is cast to bool": lambda _: run(roi=np.ones((4, 6))),
    "lies outside the scan of shape": lambda _: run(roi=(9, 0)),
    "of the data has no unit: give pixels, or the axes of the data": lambda _: run(
        VirtualDetectorUDF("disk", r="10 mrad")
    ),
    "is a lazy signal: write mask.compute() on a line of its own": lazy_signal,
    "is a number of channels: write": lambda _: run(
        VirtualDetectorUDF("window", start="1 eV", stop=3), axes=ENERGIES, sig_dims=1
    ),
    "no channel lies in the window": lambda _: run(
        VirtualDetectorUDF("window", start=540, stop=600), sig_dims=1
    ),
    "the function returned an empty array for a frame of ones": lambda _: ud.map_frames(
        X, lambda frame: frame[frame > 5]
    ),
    "lies in the detector": lambda _: run(VirtualDetectorUDF("point", x=500, y=0)),
    "lies outside of frames of shape": lambda _: run(CoMUDF(cy=500, cx=0)),
    "must be smaller than": lambda _: ud.masks.ring(4, 4, 8, 8, radius=1, radius_inner=2),
    "but a frame has the shape": lambda _: run(VirtualDetectorUDF(DISK[:4])),
    "but a virtual detector has no weights: use": lambda _: run(VirtualDetectorUDF(DISK * 3)),
    ", but frames have shape": lambda _: run(corrections=CorrectionSet(dark=np.zeros((4, 4)))),
    "one shift for each frame and signal axis": lambda _: run(descan=np.zeros((4, 6))),
    "has buffers that the default merge cannot combine": lambda _: run(udf({"v": {"kind": "sig"}})),
    "has no processing method: implement one of": lambda _: run(with_nothing()),
    "must return a dictionary of self.buffer(...)": lambda _: run(
        udf({}, get_result_buffers=lambda self: [])
    ),
    "kind must be one of": lambda _: run(udf({"v": {"kind": "scan"}})),
    "not declared in get_result_buffers()": lambda _: run(
        udf({"v": {"kind": "nav"}}, get_results=lambda self: {"w": self.results.v})
    ),
    "there is no buffer": lambda _: run(
        udf({"v": {"kind": "nav"}}, preprocess=lambda self: setattr(self.results, "w", 1))
    ),
    "left out": lambda _: run(
        udf({"v": {"kind": "nav", "use": "result_only"}}, get_results=lambda self: {})
    ),
    "has no pixel: there is nothing to draw": lambda _: ud.run_udf(X, SumUDF()).plot_detectors(
        np.zeros(X.shape[-2:], bool)
    ),
    "but has no get_results() that could": lambda _: run(
        udf({"v": {"kind": "nav", "use": "result_only"}})
    ),
    "does not exist yet: it exists": lambda _: SumUDF().results,
    "has no result": lambda _: ud.run_udf(X, SumUDF())["total"],
    "the return value of the function is not an array": lambda _: ud.map_frames(
        X, lambda frame: [[1], [1, 2]]
    ),
    "the run needs": lambda _: run(max_memory="1 MB"),
    "a sum of integers does not fit": lambda _: run(
        array=da.full((4, 1, 1), 2**63, chunks=2, dtype="u8")
    ),
    "there is no file": lambda folder: open_file(folder / "scan.npy"),
    "ask for a file of": lambda folder: raw(
        folder, nav_shape=(2, 2), sig_shape=(8, 8), dtype="uint16"
    ),
    "a raw file needs nav_shape, sig_shape and dtype, but": lambda folder: raw(
        folder, nav_shape=(2, 2)
    ),
    "must be a NumPy dtype, got": lambda folder: raw(
        folder, nav_shape=(2, 2), sig_shape=(8, 8), dtype="u16"
    ),
    "cannot hold the results": lambda folder: save_results(
        folder / "a.tif", ud.run_udf(X, {"a": SumUDF(), "b": SumUDF()})
    ),
    "has changed since it was opened": changed,
    "already exists: choose another name": twice,
    "there is no folder": lambda folder: ud.run_udf(X, SumUDF()).to_zarr(folder / "a" / "b.zarr"),
    "cannot recognize the data: they depend on": unknown_data,
}


@pytest.mark.parametrize("quoted", MISTAKES)
def test_a_mistake_gets_the_message_that_the_page_explains(quoted, tmp_path):
    with pytest.raises((ud.UDFError, ud.UDFWarning, OSError), match=re.escape(quoted)):
        MISTAKES[quoted](tmp_path)


def test_what_python_says_without_an_accessor():
    with pytest.raises(AttributeError, match="object has no attribute 'udf'"):
        np.zeros((2, 2)).udf  # noqa: B018


def test_all_mistakes_are_on_the_page():
    assert {f"`{quoted}`" for quoted in MISTAKES} <= set(QUOTED)


def test_messages_of_python_about_a_dictionary_of_results():
    quoted = {row[0].strip("`") for row in TABLES["Messages of Python and dask"]}
    results = ud.run_udf(X, {"sum": SumUDF()})
    with pytest.raises(AttributeError) as no_method:
        results.compute()
    with pytest.raises(ValueError, match="unpack") as one_value:
        _total, _others = ud.compute(results)
    assert {str(no_method.value), str(one_value.value)} <= quoted
    (results,) = ud.compute(results)  # the cure
    assert results["sum"]["intensity"].shape == (8, 8)
