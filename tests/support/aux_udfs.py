"""UDFs with aux data, for tests; importable on workers."""

import numpy as np

import udfdask as ud
from counting import Counted, note
from udf_zoo import Rows, sig_axes


class Seen(ud.UDF):
    """Checks every view of its aux data: `place` numbers frames and pixels, so that all agree."""

    def __init__(self, place, pair, pixel, one, factor=1):
        super().__init__(place=place, pair=pair, pixel=pixel, one=one, factor=factor)

    def get_preferred_input_dtype(self):
        return np.int64

    def get_result_buffers(self):
        shape = self.meta.dataset_shape
        p = self.params
        assert p.place.shape == (shape.nav.size,)
        assert p.pair.shape == (shape.nav.size, 2)
        assert p.pixel.shape == tuple(shape.sig)
        assert p.one.shape == (3,)
        assert (p.place.dtype, p.pixel.dtype) == (np.int64, np.int64)
        return {
            "weighted": self.buffer("nav", dtype="int64"),
            "total": self.buffer("sig", dtype="int64"),
            "last": self.buffer("single", extra_shape=p.pair.shape[1:], dtype="int64"),
            "done": self.buffer("nav", dtype="int64", use="result_only"),
        }

    def numbers(self):
        nav = self.meta.dataset_shape.nav
        places = self.meta.coordinates
        return (
            np.ravel_multi_index(tuple(places.T), nav) if len(nav) else np.zeros(len(places), int)
        )

    def check_rows(self, n=None):
        p = self.params
        n = len(self.meta.coordinates) if n is None else n
        numbers = self.numbers()
        np.testing.assert_array_equal(p.place, numbers)
        np.testing.assert_array_equal(p.pair, np.stack([numbers, -numbers], axis=-1))
        assert p.place.shape == (n,)
        assert p.pair.shape == (n, 2)
        assert p.one.tolist() == [7, 8, 9]
        for name in ("place", "pair", "pixel", "one"):
            assert not getattr(p, name).flags.writeable

    def check_pixels(self):
        sig = self.meta.dataset_shape.sig
        part = self.meta.sig_slice.get()
        whole = np.arange(sig.size).reshape(sig)
        np.testing.assert_array_equal(self.params.pixel, whole[part])
        assert self.params.pixel.flags.c_contiguous

    def get_task_data(self):
        self.check_rows()
        return {}

    def preprocess(self):
        self.check_rows()
        self.check_pixels()

    def postprocess(self):
        self.check_rows(self.meta.partition_shape.nav[0])
        self.check_pixels()
        if len(self.params.pair):
            self.results.last[:] = abs(self.params.pair).max(axis=0)

    def work(self, data):
        wide = data * self.params.pixel * self.params.factor
        self.results.weighted += self.params.place * wide.sum(axis=sig_axes(data))
        self.results.total += wide.sum(axis=0)

    def merge(self, dest, src):
        self.check_rows(len(src.weighted))
        assert len(self.params.place) == len(dest.weighted)
        dest.weighted[:] = src.weighted + self.params.place
        dest.total += src.total
        dest.last[:] = np.maximum(dest.last, src.last)

    def get_results(self):
        self.check_rows(len(self.results.weighted))
        return {"done": self.results.weighted - self.params.place}


class SeenByTiles(Seen):
    def process_tile(self, tile):
        self.check_rows(len(tile))
        self.check_pixels()
        self.work(tile)


class SeenByFrames(Seen):
    def process_frame(self, frame):
        p = self.params
        (number,) = self.numbers()
        assert p.place.tolist() == [number]
        assert p.pair.tolist() == [number, -number]
        self.check_pixels()
        wide = frame * p.pixel * p.factor
        self.results.weighted += p.place * wide.sum()
        self.results.total += wide


class SeenByPartitions(Seen):
    def process_partition(self, partition):
        self.check_rows(len(partition))
        self.check_pixels()
        self.work(partition)


class SeenInTree(SeenByTiles):
    """The same in a tree, whose upper nodes see the rows of many chunks."""

    merge_assigns_nav = True
    split_every = 2

    def merge(self, dest, src):
        self.check_rows(len(src.weighted))
        dest.weighted[:] = src.weighted
        dest.total += src.total
        dest.last[:] = np.maximum(dest.last, src.last)


class SeenByMergeAll(SeenInTree):
    def merge_all(self, ordered_results):
        parts = list(ordered_results.values())
        weighted = np.concatenate([p.weighted for p in parts])
        self.check_rows(len(weighted))
        return {
            "weighted": weighted,
            "total": sum(p.total for p in parts),
            "last": np.max([p.last for p in parts], axis=0),
        }


class SeenElementwise(SeenByTiles):
    elementwise_results = True


class SeenElementwiseInTree(SeenInTree):
    elementwise_results = True


AUX_UDFS = [c for c in list(vars().values()) if isinstance(c, type) and Seen in c.__mro__[1:]]


def aux_of(shape, wrap=lambda a: a, flat=False):
    """The four aux data that `Seen` wants, over a data set of this shape."""
    place = np.arange(shape.nav.size)
    pair = np.stack([place, -place], axis=-1)
    layout = (lambda a, full: a) if flat else (lambda a, full: a.reshape(full))
    pixel = np.arange(shape.sig.size)
    aux = ud.UDF.aux_data
    return {
        "place": aux(wrap(layout(place, shape.nav)), "nav", dtype="int64"),
        "pair": aux(wrap(layout(pair, (*shape.nav, 2))), "nav", extra_shape=(2,), dtype="int64"),
        "pixel": aux(wrap(layout(pixel, shape.sig)), "sig", dtype="int64"),
        "one": aux(wrap(np.array([7, 8, 9])), "single", extra_shape=3, dtype="int64"),
    }


class Subtract(Counted):
    """Sum of each frame after a value of its own has been subtracted; notes each chunk."""

    label = "subtract"

    def __init__(self, folder, level):
        super().__init__(folder, level=level)

    def get_preferred_input_dtype(self):
        return np.float64

    def get_result_buffers(self):
        return {"left": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        level = self.params.level[:, *[None] * (tile.ndim - 1)]
        self.results.left += (tile - level).sum(axis=sig_axes(tile))


class Shared(Rows):
    """Notes each making of the values that chunks share."""

    def __init__(self, folder, table):
        super().__init__(folder=folder, table=table)

    def get_shared_task_data(self):
        note(self.params.folder, "shared")
        return {"table": self.params.table * 2}

    def get_task_data(self):
        assert self.task_data.table is not None
        return {"first": int(self.meta.coordinates[0].sum())}

    def process_frame(self, frame):
        assert self.task_data.first >= 0
        self.results.sums[:] = self.task_data.table.sum()
