"""Mask factories whose calls are counted, and UDFs with masks; importable on workers."""

import threading

import numpy as np

import udfdask as ud
from counting import note
from udfdask.masks import MaskContainer


class Calls(list):
    """Known by its name wherever it is sent: the calls so far are no part of a factory."""

    def __reduce_ex__(self, protocol):
        return "CALLS"


CALLS = Calls()
LOCK = threading.Lock()


def counted(label, shape=(3, 4)):
    with LOCK:
        CALLS.append(label)
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def filed(folder, pid_of, shape):
    note(folder, f"made-{pid_of()}")
    return np.ones(shape, dtype="float32")


def ones(shape):
    return np.ones(shape)


class Dot(ud.UDF):
    """Frames times masks: of a container, or of one that is made in each task."""

    def get_task_data(self):
        masks = self.params.masks
        return {"masks": masks if isinstance(masks, MaskContainer) else masks()}

    def get_result_buffers(self):
        return {"dots": self.buffer("nav", extra_shape=(2,), dtype="float64")}

    def process_tile(self, tile):
        flat = tile.reshape(tile.shape[0], -1)
        self.results.dots += flat @ self.task_data.masks.get(self.meta.slice)
