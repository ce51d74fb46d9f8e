"""UDFs that keep what they see, in all ways to process frames and with all kinds of dtypes."""

import numpy as np

import udfdask as ud


class Seen(ud.UDF):
    """Keeps every pixel of every frame; frames that the run has changed are contiguous."""

    dtype = np.dtype(np.float32)

    def __init__(self, changed=True):
        super().__init__(changed=changed)

    def get_preferred_input_dtype(self):
        return self.dtype

    def get_result_buffers(self):
        sig = tuple(self.meta.dataset_shape.sig)
        return {"frames": self.buffer("nav", extra_shape=sig, dtype=self.meta.input_dtype)}

    def look(self, data):
        assert data.dtype == self.meta.input_dtype
        assert data.flags.writeable == self.writable_input
        assert data.flags.c_contiguous or not self.params.changed

    def end(self, data):
        if self.writable_input:
            data[...] = 77


class Tiles(Seen):
    def process_tile(self, tile):
        self.look(tile)
        self.results.frames[(slice(None), *self.meta.sig_slice.get())] = tile
        self.end(tile)


class Frames(Seen):
    dtype = np.dtype(np.float64)

    def process_frame(self, frame):
        self.look(frame)
        self.results.frames[:] = frame
        self.end(frame)


class Partitions(Seen):
    dtype = ud.UDF.USE_NATIVE_DTYPE

    def process_partition(self, partition):
        self.look(partition)
        self.results.frames[:] = partition
        self.end(partition)


class WritesTiles(Tiles):
    writable_input = True


class WritesFrames(Frames):
    writable_input = True
    dtype = np.dtype(np.float32)


class WritesPartitions(Partitions):
    writable_input = True


class WholeTiles(Tiles):
    whole_frames = True


class ComplexTiles(Tiles):
    dtype = np.dtype(np.complex64)


class DeepTiles(Tiles):
    def get_tiling_preferences(self):
        return {"depth": 2, "total_size": np.inf}


EVERY_KIND = [
    Tiles,
    Frames,
    Partitions,
    WritesTiles,
    WritesFrames,
    WritesPartitions,
    WholeTiles,
    ComplexTiles,
    DeepTiles,
]
