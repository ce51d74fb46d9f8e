"""UDFs for tests, one for each thing that a UDF can do; importable on workers."""

import numpy as np

import udfdask as ud


def sig_axes(data, extra=0):
    return tuple(range(1, data.ndim))


class Native(ud.UDF):
    """Sees integers as they are, so that sums of them are exact."""

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE


class Rows(ud.UDF):
    """A number for each frame."""

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum()


class NavSums(Native):
    """Nav only, no merge: rows added up over the signal tiles."""

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="int64")}

    def process_tile(self, tile):
        self.results.sums += tile.sum(axis=sig_axes(tile), dtype="int64")


class FrameNavSums(Native):
    def get_result_buffers(self):
        return {
            "sums": self.buffer("nav", dtype="int64"),
            "ends": self.buffer("nav", extra_shape=(2,), dtype="int64"),
        }

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum(dtype="int64")
        self.results.ends[:] = frame.min(), frame.max()


class PartitionNavSums(Native):
    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="int64")}

    def process_partition(self, partition):
        self.results.sums[:] = partition.sum(axis=sig_axes(partition), dtype="int64")


class TileTree(Native):
    """Sig and single buffers only: a tree."""

    def get_result_buffers(self):
        return {
            "total": self.buffer("sig", dtype="int64"),
            "count": self.buffer("single", dtype="int64"),
            "squares": self.buffer("single", extra_shape=(2, 1), dtype="int64"),
        }

    def process_tile(self, tile):
        self.results.total += tile.sum(axis=0, dtype="int64")
        if self.meta.tiling_scheme_idx == 0:
            self.results.count += len(tile)
        wide = tile.astype("int64")
        self.results.squares += np.array([[1], [2]]) * np.sum(wide * wide)

    def merge(self, dest, src):
        dest.total += src.total
        dest.count[:] += src.count
        dest.squares += src.squares


class FrameTree(TileTree):
    process_tile = None

    def get_method(self):
        return self.UDF_METHOD.FRAME

    def process_frame(self, frame):
        wide = frame.astype("int64")
        self.results.total += wide
        self.results.count += 1
        self.results.squares += np.array([[1], [2]]) * np.sum(wide * wide)


class PartitionTree(TileTree):
    """The same by whole partitions, merged in one step."""

    split_every = False

    def get_method(self):
        return self.UDF_METHOD.PARTITION

    def process_partition(self, partition):
        wide = partition.astype("int64")
        self.results.total[:] += wide.sum(axis=0)
        self.results.count[:] += len(wide)
        self.results.squares += np.array([[1], [2]]) * np.sum(wide * wide)


class NarrowTree(TileTree):
    split_every = 2


class Chain(TileTree):
    """Own merge with nav buffers among others: one chunk after another."""

    def get_result_buffers(self):
        return {**super().get_result_buffers(), "sums": self.buffer("nav", dtype="int64")}

    def process_tile(self, tile):
        super().process_tile(tile)
        self.results.sums += tile.sum(axis=sig_axes(tile), dtype="int64")

    def merge(self, dest, src):
        super().merge(dest, src)
        dest.sums[:] += src.sums


class AssigningTree(Chain):
    """The same in a tree, since nav buffers are only assigned."""

    merge_assigns_nav = True
    split_every = 3

    def merge(self, dest, src):
        TileTree.merge(self, dest, src)
        dest.sums[:] = src.sums


class RowsMerge(NavSums):
    def merge(self, dest, src):
        dest.sums[:] = 2 * src.sums


class MergeAllWhole(TileTree):
    """merge_all without nav buffers; wins over merge."""

    split_every = 2

    def merge(self, dest, src):
        raise AssertionError("merge_all wins")

    def merge_all(self, ordered_results):
        parts = list(ordered_results.values())
        return {name: sum(p[name] for p in parts) for name in ("total", "count", "squares")}


class MergeAllNav(Chain):
    def merge_all(self, ordered_results):
        parts = list(ordered_results.values())
        whole = {name: sum(p[name] for p in parts) for name in ("total", "count", "squares")}
        return {**whole, "sums": np.concatenate([p.sums for p in parts])}


class MergeAllOnce(MergeAllNav):
    """A median over frames: not associative, so in one step."""

    split_every = False

    def get_result_buffers(self):
        return {**super().get_result_buffers(), "median": self.buffer("single", dtype="float64")}

    def merge_all(self, ordered_results):
        merged = super().merge_all(ordered_results)
        return {**merged, "median": np.median(merged["sums"])}


class MinMax(Native):
    """preprocess with values that are not zero."""

    def get_result_buffers(self):
        dtype = self.meta.input_dtype
        return {
            "least": self.buffer("sig", dtype=dtype),
            "most": self.buffer("single", dtype="float64"),
            "peak": self.buffer("nav", dtype="float64"),
        }

    def preprocess(self):
        self.results.least[:] = 100
        self.results.most[:] = -np.inf
        self.results.peak[:] = -np.inf

    def process_tile(self, tile):
        self.results.least[:] = np.minimum(self.results.least, tile.min(axis=0))
        self.results.most[:] = np.maximum(self.results.most, tile.max())
        self.results.peak[:] = np.maximum(self.results.peak, tile.max(axis=sig_axes(tile)))

    def merge(self, dest, src):
        dest.least[:] = np.minimum(dest.least, src.least)
        dest.most[:] = np.maximum(dest.most, src.most)
        dest.peak[:] = np.maximum(dest.peak, src.peak)


class MinMaxTree(MinMax):
    merge_assigns_nav = True
    split_every = 2

    def merge(self, dest, src):
        super().merge(dest, src)
        dest.peak[:] = src.peak


class Postprocessed(NavSums):
    """postprocess sees the rows of the whole chunk."""

    def get_result_buffers(self):
        return {**super().get_result_buffers(), "half": self.buffer("nav", dtype="float64")}

    def postprocess(self):
        assert len(self.results.sums) == self.meta.partition_shape.nav[0]
        assert len(self.meta.coordinates) == len(self.results.half)
        self.results.half[:] = self.results.sums / 2


class ExtraShapes(Native):
    """Extra axes of every kind of buffer, one of extent 0."""

    def get_result_buffers(self):
        return {
            "pair": self.buffer("nav", extra_shape=(2, 2), dtype="float32"),
            "none": self.buffer("nav", extra_shape=(0,), dtype="int32"),
            "moments": self.buffer("sig", extra_shape=(3,), dtype="float64"),
            "table": self.buffer("single", extra_shape=(2, 3), dtype="complex128"),
        }

    def process_tile(self, tile):
        sums = tile.sum(axis=sig_axes(tile))
        self.results.pair[:, 0, 1] += sums
        self.results.pair[:, 1, 0] -= sums
        for power in range(3):
            self.results.moments[..., power] += (tile.astype("float64") ** power).sum(axis=0)
        self.results.table += 1j * tile.astype("float64").sum()

    def merge(self, dest, src):
        dest.pair[:] = src.pair
        dest.moments += src.moments
        dest.table += src.table


class ResultsOfAll(Chain):
    """get_results: nav, sig, single, result_only and private buffers."""

    def get_result_buffers(self):
        return {
            **super().get_result_buffers(),
            "hidden": self.buffer("single", dtype="float64", use="private"),
            "share": self.buffer("nav", dtype="float64", use="result_only"),
            "mean": self.buffer("sig", dtype="float64", use="result_only"),
            "frames": self.buffer("single", dtype="float64", use="result_only"),
            "seen": self.buffer("single", dtype="int64", use="result_only"),
        }

    def process_tile(self, tile):
        super().process_tile(tile)
        self.results.hidden += float(tile.sum(dtype="int64"))

    def merge(self, dest, src):
        super().merge(dest, src)
        dest.hidden += src.hidden

    def get_results(self):
        mask = self.meta.get_valid_nav_mask()
        count = max(1, int(self.results.count[0]))
        return {
            "share": self.results.sums / (abs(self.results.hidden[0]) + 1),
            "mean": self.results.total / count,
            "frames": np.float32(count),
            "seen": int(mask.sum()),
            "total": self.results.total * 2,
        }


class Elementwise(NavSums):
    elementwise_results = True

    def get_result_buffers(self):
        return {
            **super().get_result_buffers(),
            "scaled": self.buffer("nav", extra_shape=(2,), dtype="float64", use="result_only"),
        }

    def get_results(self):
        return {"scaled": np.stack([self.results.sums * 0.5, self.results.sums + 1.0], axis=-1)}


class ElementwiseWithWhole(Chain):
    elementwise_results = True

    def get_result_buffers(self):
        return {
            **super().get_result_buffers(),
            "share": self.buffer("nav", dtype="float64", use="result_only"),
        }

    def get_results(self):
        return {"share": self.results.sums / max(1, int(self.results.count[0]))}


class FullShape(NavSums):
    def get_result_buffers(self):
        return {
            **super().get_result_buffers(),
            "place": self.buffer("nav", dtype="int64", use="result_only"),
        }

    def get_results(self):
        nav = self.meta.dataset_shape.nav
        return {"place": np.arange(nav.size).reshape(nav)}


class Contiguous(Native):
    contiguous_nav = True

    def get_result_buffers(self):
        return {"row": self.buffer("nav", dtype="int64")}

    def process_tile(self, tile):
        first = self.meta.slice.origin[0]
        self.results.row[:] = first + np.arange(len(tile))


class Coordinates(Native):
    def get_result_buffers(self):
        n = len(self.meta.dataset_shape.nav)
        return {
            "where": self.buffer("nav", extra_shape=(n,), dtype="int64"),
            "rows": self.buffer("nav", dtype="int64"),
        }

    def process_tile(self, tile):
        every = np.arange(
            self.meta.dataset_shape.nav.size if self.meta.roi is None else self.meta.roi.sum()
        )
        self.results.where[:] = self.meta.coordinates
        self.results.rows[:] = every[self.meta.slice.get(nav_only=True)]


class WholeFrames(Native):
    whole_frames = True

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="int64")}

    def process_tile(self, tile):
        assert tile.shape[1:] == tuple(self.meta.dataset_shape.sig)
        self.results.sums[:] = tile.sum(axis=sig_axes(tile), dtype="int64")


class WritesInput(NavSums):
    writable_input = True

    def process_tile(self, tile):
        tile //= 2
        super().process_tile(tile)


class WritesFrames(FrameNavSums):
    writable_input = True

    def process_frame(self, frame):
        frame //= 2
        super().process_frame(frame)


class WritesPartition(PartitionNavSums):
    writable_input = True

    def process_partition(self, partition):
        partition //= 2
        super().process_partition(partition)


class Floats(ud.UDF):
    """Converted input, floats, task data and a parameter."""

    def __init__(self, factor=1.5):
        super().__init__(factor=factor)

    def get_result_buffers(self):
        return {
            "weighted": self.buffer("nav", dtype=self.meta.input_dtype),
            "total": self.buffer("sig", dtype="float64"),
        }

    def get_task_data(self):
        return {"factor": np.asarray(self.params.factor, dtype=self.meta.input_dtype)}

    def process_tile(self, tile):
        assert tile.dtype == self.meta.input_dtype
        self.results.weighted += self.task_data.factor * tile.sum(axis=sig_axes(tile))
        self.results.total += tile.sum(axis=0)

    def merge(self, dest, src):
        dest.weighted[:] = src.weighted
        dest.total += src.total


ZOO = [
    each
    for each in list(vars().values())
    if isinstance(each, type) and issubclass(each, ud.UDF) and each is not Native
]
