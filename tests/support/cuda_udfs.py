"""UDFs that need a CUDA device, or say so, over plain arrays; they note where they run."""

import time

import numpy as np

import udfdask as ud
from counting import note
from udf_zoo import sig_axes


def here():
    from distributed import get_worker

    try:
        return str(get_worker().name)
    except ValueError:
        return "none"


def loaded(block, folder, block_info=None):
    place = "-".join(map(str, block_info[0]["chunk-location"]))
    note(folder, f"load-{place}@{here()}")
    return block + 1


class Rows(ud.UDF):
    """Rows and a frame; notes the worker of each chunk. `offers` are its backends."""

    offers = ("numpy",)

    def __init__(self, folder, pause=0.0, offset=0):
        super().__init__(folder=folder, pause=pause, offset=offset)

    def get_backends(self):
        return self.offers

    def get_preferred_input_dtype(self):
        return self.USE_NATIVE_DTYPE

    def get_task_data(self):
        place = "-".join(map(str, self.meta.coordinates[0]))
        note(self.params.folder, f"{type(self).__name__.lower()}-{place}@{here()}")
        time.sleep(self.params.pause)
        return {}

    def get_result_buffers(self):
        return {
            "sums": self.buffer("nav", dtype="int64"),
            "total": self.buffer("sig", dtype="int64"),
        }

    def process_tile(self, tile):
        self.results.sums += tile.sum(axis=sig_axes(tile)) + self.params.offset
        self.results.total += tile.sum(axis=0)

    def merge(self, dest, src):
        dest.sums = src.sums
        dest.total += src.total


class Cuda(Rows):
    offers = ("cuda",)


class Cupy(Rows):
    offers = ("cupy", "cupyx.scipy.sparse.csr_matrix")


class Hybrid(Rows):
    offers = ("numpy", "cuda", "cupy")


def numbers(array):
    values = np.asarray(array)
    return values.sum(axis=(2, 3)), values.sum(axis=(0, 1))
