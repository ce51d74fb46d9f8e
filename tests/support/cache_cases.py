"""Runs for tests of caches: every way to merge, everything that a run can have."""

import copy
import random
from collections import Counter
from pathlib import Path

import dask.array as da
import numpy as np

import udf_zoo as zoo
import udfdask as ud
from aux_udfs import SeenByMergeAll, SeenByTiles, SeenElementwiseInTree, SeenInTree, aux_of
from counting import MeanFrame, SubtractMean, counts, note
from udfdask.corrections import CorrectionSet, Descan
from udfdask.udfs import ApplyMasksUDF, CoMUDF, StdDevUDF, SumSigUDF, SumUDF

SHAPE = (4, 5, 3, 4)
CHUNKS = (1, 2, 3, 4)  # 4 x 3 navigation chunks


class NotedData:
    """An array-like whose reads are noted, and fail while a file says so."""

    def __init__(self, shape, dtype, folder):
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)
        self.folder = str(folder)

    def __getitem__(self, index):
        loads = Path(self.folder, "loads")
        loads.mkdir(exist_ok=True)
        limit = Path(self.folder, "limit")
        if limit.exists() and len(list(loads.iterdir())) >= int(limit.read_text()):
            raise RuntimeError("power failure")
        note(loads, "-".join(str(i.start) for i in index))
        numbers = np.arange(np.prod(self.shape)).reshape(self.shape)[index]
        return ((numbers * 7919) % 1009).astype(self.dtype)


def data(folder, chunks=CHUNKS, dtype="int32", shape=SHAPE):
    """The data; every read leaves a file in the folder `loads`."""
    meta = np.empty((0,) * len(shape), dtype)  # otherwise dask would read a block
    return da.from_array(NotedData(shape, dtype, folder), chunks=chunks, name=False, meta=meta)


def loads(folder):
    path = Path(folder, "loads")
    return counts(path) if path.exists() else Counter()


def stop_after(folder, n_loads):
    limit = Path(folder, "limit")
    limit.unlink(missing_ok=True)
    if n_loads is not None:
        limit.write_text(str(n_loads))


def assert_equal(found, expected):
    """Results and arrays are equal to the last bit."""
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, ud.Result):
            assert list(one) == list(other)
            for name in other:
                assert_same_bits(one[name], other[name])
                assert_same_bits(one.valid_mask[name], other.valid_mask[name])
        else:
            assert_same_bits(one, other)


def assert_same_bits(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()


def damage(file, how):
    content = file.read_bytes()
    if how == "removed":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "cut":
        file.write_bytes(content[: len(content) // 2])
    else:
        place = random.Random(0).randrange(len(content))
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def sums(folder):
    return da.from_array(np.arange(240.0).reshape(SHAPE), chunks=2).mean(axis=(0, 1))


def several(x, folder, **options):
    return ud.run_udf(x, [SumUDF(), SumSigUDF(), CoMUDF(), StdDevUDF()], **options)


def one(cls, *args, **kwargs):
    return lambda folder: (ud.run_udf(data(folder), cls(*args, **kwargs)),)


def mask(*positions):
    roi = np.zeros(SHAPE[:2], dtype=bool)
    for position in positions:
        roi[position] = True
    return roi


ROI = mask((0, 0), (0, 1), (1, 4), (2, slice(1, 4)), (3, 2))


def with_roi(folder):
    return ud.run_udf(data(folder), [zoo.Chain(), zoo.AssigningTree(), SumSigUDF()], roi=ROI)


def with_signal_chunks(folder):
    x = data(folder, chunks=(1, 2, 2, 2))
    return (*several(x, folder), ud.run_udf(x, zoo.FrameTree(), roi=ROI))


def by_signal_chunk(folder):
    shape = (4, 5, 12, 12)
    x = data(folder, chunks=(1, 2, 1, 1), shape=shape)
    return ud.run_udf(x, [SumUDF(), SumSigUDF()])


def of_floats(folder):
    return several(data(folder, dtype="float32"), folder)


def corrected(folder):
    dark = np.arange(12.0).reshape(3, 4)
    excluded = np.array([[1], [2]])
    corrections = CorrectionSet(dark=dark, excluded_pixels=excluded)
    return several(data(folder), folder, corrections=corrections)


def descanned(folder):
    shifts = np.linspace(-1.4, 2, 40).reshape((*SHAPE[:2], 2))
    parts = Descan(da.from_array(shifts, chunks=2), subpixel=True)
    x = data(folder, chunks=(1, 2, 2, 2))
    return (*several(x, folder, descan=shifts), ud.run_udf(x, SumUDF(), descan=parts, roi=ROI))


def lazily_corrected(folder):
    return ud.run_udf(data(folder), SumUDF(), corrections=CorrectionSet(dark=sums(folder)))


def lazy_parameter(folder):
    return (ud.run_udf(data(folder), SubtractMean(sums(folder))),)


def two_passes(folder):
    x = data(folder)
    mean = ud.run_udf(x, MeanFrame())["mean"]
    return (ud.run_udf(x, SubtractMean(mean)),)


def with_aux(folder):
    aux = aux_of(ud.Shape(SHAPE, sig_dims=2))
    kinds = [SeenByTiles, SeenInTree, SeenByMergeAll, SeenElementwiseInTree]
    return ud.run_udf(data(folder), [kind(**aux) for kind in kinds])


def with_lazy_aux(folder):
    aux = aux_of(ud.Shape(SHAPE, sig_dims=2), wrap=lambda a: da.from_array(a, chunks=2))
    return ud.run_udf(data(folder), [SeenByTiles(**aux), SeenInTree(**aux)])


def large_parameter(folder):
    masks = np.random.default_rng(0).normal(size=(2000, 3, 4))
    return ud.run_udf(data(folder), [ApplyMasksUDF(mask_factories=lambda: masks), SumUDF()])


def in_memory(folder):
    x = da.from_array(np.arange(240).reshape(SHAPE), chunks=CHUNKS)
    return ud.run_udf(x, [SumUDF(), SumSigUDF()])


def sliced(folder):
    return several(data(folder)[1:, ::2].rechunk((1, 2, 3, 4)), folder)


def derived_arrays(folder):
    total, sums_, _, deviation = several(data(folder), folder)
    return (total, sums_["intensity"] + 1, deviation["std"].sum(), deviation.raw["var"])


CASES = {
    "nav": one(zoo.FrameNavSums),
    "tree": one(zoo.TileTree),
    "narrow tree": one(zoo.NarrowTree),
    "chain": one(zoo.Chain),
    "tree with nav": one(zoo.AssigningTree),
    "rows": one(zoo.RowsMerge),
    "merge_all": one(zoo.MergeAllWhole),
    "merge_all with nav": one(zoo.MergeAllNav),
    "merge_all once": one(zoo.MergeAllOnce),
    "get_results": one(zoo.ResultsOfAll),
    "get_results by chunk": one(zoo.Elementwise),
    "get_results with sums": one(zoo.ElementwiseWithWhole),
    "postprocess": one(zoo.Postprocessed),
    "extra shapes": one(zoo.ExtraShapes),
    "floats": one(zoo.Floats),
    "several": lambda folder: several(data(folder), folder),
    "several of floats": of_floats,
    "roi": with_roi,
    "signal chunks": with_signal_chunks,
    "by signal chunk": by_signal_chunk,
    "corrected": corrected,
    "descanned": descanned,
    "lazily corrected": lambda folder: (lazily_corrected(folder),),
    "lazy parameter": lazy_parameter,
    "two passes": two_passes,
    "aux data": with_aux,
    "lazy aux data": with_lazy_aux,
    "large parameter": large_parameter,
    "in memory": in_memory,
    "sliced": sliced,
    "derived arrays": derived_arrays,
}


def computed(*results, **options):
    return ud.compute(*results, **{"scheduler": "synchronous", **options})


def without_cache(*results):
    with ud.cache(None):
        return computed(*results)


def records(folder):
    return sorted(Path(folder).glob("records/*.record"))


class LooksAround(ud.UDF):
    """Its partial results depend on the ROI outside of a chunk, in a way that a test chooses."""

    def get_result_buffers(self):
        return {"seen": self.buffer("nav", dtype="int64")}

    def get_shared_task_data(self):
        return {"n": self._selected() if self.params.how == "shared" else 0}

    def get_task_data(self):
        return {"own": self._selected() if self.params.how == "own" else 0}

    def preprocess(self):
        self.offset = self._selected() if self.params.how == "preprocess" else 0

    def _selected(self):
        roi = self.meta.roi
        return 20 if roi is None else int(roi.sum())

    def process_frame(self, frame):
        how = self.params.how
        seen = self.task_data.n + self.task_data.own + self.offset
        if how == "slice":
            seen = self.meta.slice.origin[0] if self.meta.slice.rows is None else 99
        elif how == "tiling_scheme":
            seen = self.meta.tiling_scheme.depth
        elif how == "sometimes" and frame[0, 0] % 2:
            seen = self._selected()
        elif how == "copy":
            seen = 20 if copy.copy(self.meta).roi is None else 5
        elif how == "deep copy":
            seen = 20 if copy.deepcopy(self.meta).roi is None else 5
        elif how == "cursor":
            seen = self.meta.cursor.chunks[0]
        self.results.seen[:] = seen
