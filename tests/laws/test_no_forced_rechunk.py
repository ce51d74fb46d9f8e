"""Law 3: any chunk grid runs as it is, tiles are views, and little is copied at a time."""

import math
import tracemalloc

import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from array_kinds import DASK
from udfdask.chunk.run_chunk import run_chunk
from udfdask.geometry.tiling import TILE_BYTES
from udfdask.testing.eager_run import make_recipe
from udfdask.udfs import SumSigUDF, SumUDF

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

GRIDS = {
    "one chunk": ((6, 5, 4, 3), (6, 5, 4, 3)),
    "first nav axis": ((6, 5, 4, 3), (2, 5, 4, 3)),
    "both nav axes": ((6, 5, 4, 3), (2, 2, 4, 3)),
    "second nav axis": ((6, 5, 4, 3), (6, 2, 4, 3)),
    "signal": ((6, 5, 4, 3), (2, 5, 2, 3)),
    "everything": ((6, 5, 4, 3), (2, 2, 3, 2)),
    "many signal chunks": ((6, 5, 4, 3), (3, 5, 1, 1)),
    "ragged": ((6, 5, 4, 3), ((1, 4, 1), (3, 2), (1, 3), (2, 1))),
    "axes of size 1": ((1, 5, 1, 3), (1, 2, 1, 2)),
    "single frames": ((6, 5, 4, 3), (1, 1, 4, 3)),
}
UDFS = [udf_zoo.NavSums(), udf_zoo.TileTree(), udf_zoo.Chain(), SumUDF(), udf_zoo.FrameNavSums()]


def made(grid, kind=DASK):
    shape, chunks = GRIDS[grid]
    data = np.arange(math.prod(shape)).reshape(shape)
    return data, kind.from_array(data, chunks)


@pytest.mark.parametrize("grid", GRIDS)
def test_no_layer_moves_data(grid):
    _, array = made(grid)
    before = set(array.dask.layers)
    for results in (ud.run_udf(array, UDFS), (ud.run_udf(array, [SumUDF(), SumSigUDF()]))):
        for result in results:
            for name in result:
                added = set(result[name].dask.layers) - before
                wrong = [
                    layer
                    for layer in added
                    for word in ("rechunk", "transpose", "reshape", "concatenate", "getitem")
                    if word in layer
                ]
                assert not wrong
                # the array's own layers are there as they were, but for blocks of plain data,
                # which chunk tasks hold themselves
                for layer in before - set(result[name].dask.layers):
                    blocks = array.dask.layers[layer].values()
                    assert all(isinstance(block, np.ndarray) for block in blocks)


@pytest.mark.parametrize("grid", GRIDS)
def test_nav_outputs_keep_the_chunks(grid, kind):
    data, array = made(grid, kind)
    udfs = [*UDFS, udf_zoo.ResultsOfAll(), udf_zoo.ExtraShapes()]
    results = kind.run(array, udfs)
    for lazy, done in zip(results, ud.compute(*results, scheduler="sync"), strict=True):
        for name in lazy:
            graph = kind.plain(lazy[name]).__dask_graph__()
            assert not [key for key in graph if "rechunk" in str(key)]
            if kind.is_nav(lazy, name):
                assert lazy[name].chunks[:2] == array.chunks[:2]
                assert done[name].shape[:2] == data.shape[:2]
    np.testing.assert_array_equal(results[0]["sums"].compute(), data.sum(axis=(2, 3)))


@pytest.mark.parametrize("grid", ["both nav axes", "signal", "ragged", "many signal chunks"])
def test_blocks_are_what_was_announced(grid, kind):
    _, array = made(grid, kind)
    sums = kind.plain(kind.run(array, udf_zoo.ResultsOfAll())["share"])
    for place in np.ndindex(*sums.numblocks):
        announced = tuple(c[i] for c, i in zip(sums.chunks, place, strict=True))
        assert sums.blocks[place].compute(scheduler="sync").shape == announced


class Looks(udf_zoo.Native):
    """Keeps what it is given, for the test to look at."""

    seen: list = []

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.seen.append((self.meta.slice, tile))


class LooksAtFrames(Looks):
    process_tile = None

    def get_method(self):
        return self.UDF_METHOD.FRAME

    def process_frame(self, frame):
        self.seen.append((self.meta.slice, frame))


class LooksAtPartitions(Looks):
    process_tile = None

    def get_method(self):
        return self.UDF_METHOD.PARTITION

    def process_partition(self, partition):
        self.seen.append((self.meta.slice, partition))


def look(udf, data, **options):
    """What a UDF was given over one chunk."""
    type(udf).seen = []
    sig_chunks = options.get("sig_chunks", [[n] for n in data.shape[-2:]])
    blocks, row = [], 0
    for height in sig_chunks[0]:
        column = 0
        for width in sig_chunks[1]:
            blocks.append(data[..., row : row + height, column : column + width].copy())
            column += width
        row += height
    recipe = make_recipe([udf], shape=data.shape, dtype=data.dtype, **options)
    run_chunk(recipe, 0, blocks)
    return blocks, type(udf).seen


class TestTiles:
    data = np.arange(4 * 5 * 8 * 6, dtype="uint16").reshape(4, 5, 8, 6)

    @pytest.mark.parametrize("tile_bytes", [1 << 20, 512, 96, 1])
    @pytest.mark.parametrize("sig_chunks", [[[8], [6]], [[4, 4], [6]], [[3, 5], [1, 5]]])
    def test_are_views(self, tile_bytes, sig_chunks):
        blocks, seen = look(Looks(), self.data, sig_chunks=sig_chunks, tile_bytes=tile_bytes)
        assert seen
        for _, tile in seen:
            assert any(np.shares_memory(tile, block) for block in blocks)
            assert not tile.flags.writeable
        assert sum(tile.size for _, tile in seen) == self.data.size

    @pytest.mark.parametrize("tile_bytes", [1 << 20, 512, 96, 1])
    def test_lie_where_the_slice_says(self, tile_bytes):
        flat = self.data.reshape(20, 8, 6)
        _, seen = look(Looks(), self.data, sig_chunks=[[3, 5], [1, 5]], tile_bytes=tile_bytes)
        for where, tile in seen:
            np.testing.assert_array_equal(where.get(flat), tile)

    def test_fit_the_cache(self):
        for size in (1 << 20, 4096, 512, 2):
            _, seen = look(Looks(), self.data, tile_bytes=size)
            assert max(t.nbytes for _, t in seen) <= max(size, 2)

    def test_converted_ones_are_read_only(self):
        class Converted(Looks):
            def get_preferred_input_dtype(self):
                return np.float32

        blocks, seen = look(Converted(), self.data)
        for _, tile in seen:
            assert tile.dtype == np.float32
            assert not tile.flags.writeable
            assert not np.shares_memory(tile, blocks[0])

    def test_one_conversion_is_shared(self):
        class One(Looks):
            seen: list = []

            def get_preferred_input_dtype(self):
                return np.float32

        class Two(One):
            seen: list = []

        recipe = make_recipe([One(), Two()], shape=self.data.shape, dtype=self.data.dtype)
        run_chunk(recipe, 0, (self.data,))
        for (_, a), (_, b) in zip(One.seen, Two.seen, strict=True):
            assert a is b

    def test_writable_ones_are_private(self):
        class Writable(Looks):
            writable_input = True

        blocks, seen = look(Writable(), self.data)
        for _, tile in seen:
            assert tile.flags.writeable
            assert not np.shares_memory(tile, blocks[0])

    def test_frames_are_read_only_views(self):
        blocks, seen = look(LooksAtFrames(), self.data)
        assert len(seen) == 20
        for _, frame in seen:
            assert np.shares_memory(frame, blocks[0])
            assert not frame.flags.writeable

    def test_assembled_frames_are_read_only(self):
        _, seen = look(LooksAtFrames(), self.data, sig_chunks=[[3, 5], [1, 5]])
        for (_, frame), wanted in zip(seen, self.data.reshape(20, 8, 6), strict=True):
            np.testing.assert_array_equal(frame, wanted)
            assert not frame.flags.writeable

    def test_a_partition_is_a_read_only_view(self):
        blocks, seen = look(LooksAtPartitions(), self.data)
        ((_, partition),) = seen
        assert np.shares_memory(partition, blocks[0])
        assert not partition.flags.writeable

    def test_the_block_itself_stays_writable_for_its_owner(self):
        block = self.data.copy()
        recipe = make_recipe([Looks()], shape=block.shape, dtype=block.dtype)
        run_chunk(recipe, 0, (block,))
        assert block.flags.writeable

    @pytest.mark.parametrize(
        "cls", [udf_zoo.NavSums, udf_zoo.FrameNavSums, udf_zoo.PartitionNavSums]
    )
    def test_writing_to_the_input_fails_loudly(self, cls):
        class Writes(cls):
            def process_tile(self, tile):
                tile[:] = 0

            def process_frame(self, frame):
                frame[:] = 0

            def process_partition(self, partition):
                partition[:] = 0

            def get_method(self):
                return cls().get_method()

        for dtype in ("int64", "uint8"):
            data = da.ones((2, 2, 3, 3), dtype=dtype, chunks=(1, 2, 3, 2))
            with pytest.raises(ValueError, match="read-only") as caught:
                ud.run_udf(data, Writes()).compute(scheduler="sync")
            assert any("Writes.process_" in note for note in caught.value.__notes__)


class Converting(ud.UDF):
    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.results.sums += tile.sum(axis=(1, 2))


class ConvertingFrames(Converting):
    process_tile = None

    def get_method(self):
        return self.UDF_METHOD.FRAME

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum()


class ConvertingWholeFrames(Converting):
    whole_frames = True


def peak_of(udf, data, sig_chunks=None, mask=None):
    """Bytes allocated at once while a chunk runs."""
    sig_chunks = sig_chunks or [[n] for n in data.shape[1:]]
    ends = [np.cumsum(c) for c in sig_chunks]
    blocks = [
        np.ascontiguousarray(data[:, a - n : a, b - m : b])
        for a, n in zip(ends[0], sig_chunks[0], strict=True)
        for b, m in zip(ends[1], sig_chunks[1], strict=True)
    ]
    recipe = make_recipe([udf], shape=data.shape, dtype=data.dtype, sig_chunks=sig_chunks, roi=mask)
    run_chunk(recipe, 0, blocks)  # whatever is made once per process
    tracemalloc.start()
    try:
        run_chunk(recipe, 0, blocks)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("sig_chunks", [None, [[32, 32], [64]], [[20, 44], [30, 34]]])
@pytest.mark.parametrize("udf", [Converting(), ConvertingFrames(), ConvertingWholeFrames()])
@pytest.mark.parametrize("some", [False, True], ids=["all frames", "roi"])
def test_never_more_than_two_tiles_are_copied(udf, sig_chunks, some):
    data = np.ones((2000, 64, 64), dtype="uint16")  # 16 MB, 32 MB converted
    mask = np.arange(2000) % 3 > 0 if some else None
    assert peak_of(udf, data, sig_chunks, mask) < 2 * TILE_BYTES + (200 << 10)


def test_no_conversion_copies_nothing():
    data = np.ones((2000, 64, 64), dtype="float32")
    assert peak_of(Converting(), data) < 400 << 10


class TestContiguous:
    def test_tiles_have_an_origin(self):
        result = ud.run_udf(
            da.zeros((6, 5, 2, 2), chunks=(2, 2, 2, 2)), udf_zoo.Contiguous(), roi=np.s_[::2, 1:]
        ).compute(scheduler="sync")
        np.testing.assert_array_equal(result.raw["row"], np.arange(12))

    @pytest.mark.parametrize("chunks", [(2, 2, 2, 2), (2, 5, 2, 2)])
    def test_partitions_that_are_not_come_in_parts(self, chunks):
        class Parts(udf_zoo.PartitionNavSums):
            contiguous_nav = True

            def process_partition(self, partition):
                assert self.meta.slice.origin[0] >= 0
                super().process_partition(partition)

        data = np.random.default_rng(0).integers(0, 9, (6, 5, 2, 2))
        parts, whole = (
            ud.run_udf(da.from_array(data, chunks=chunks), udf()).compute(scheduler="sync")
            for udf in (Parts, udf_zoo.PartitionNavSums)
        )
        np.testing.assert_array_equal(parts["sums"], whole["sums"])

    def test_no_origin_without_asking(self):
        class Asks(udf_zoo.NavSums):
            def process_tile(self, tile):
                self.meta.slice.origin  # noqa: B018

        with pytest.raises(ud.UDFError):
            ud.run_udf(da.zeros((6, 5, 2, 2), chunks=(2, 2, 2, 2)), Asks()).compute()


class TestWarnings:
    pytestmark = pytest.mark.filterwarnings("default")

    def test_many_signal_chunks(self):
        array = da.zeros((400, 400, 12, 12), chunks=(200, 400, 4, 4))
        with pytest.warns(ud.UDFWarning, match=r"9 signal chunks.*NavSums.*rechunk\("):
            ud.run_udf(array, udf_zoo.NavSums())

    def test_none_where_each_signal_chunk_has_a_task(self, recwarn):
        array = da.zeros((4, 4, 12, 12), chunks=(2, 4, 4, 4))
        total, sums = ud.run_udf(array, [SumUDF(), SumSigUDF()])
        assert not recwarn.list
        assert any("-join-" in name for name in total["intensity"].dask.layers)
        np.testing.assert_array_equal(sums["intensity"].compute(), np.zeros((4, 4)))
