"""Mask factories whose calls are counted, and UDFs with masks; importable on workers."""

import threading

import numpy as np

import udfdask as ud
from counting import note


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
    """Frames times masks; the container is made by `how`, in each task."""

    def __init__(self, how, count=2):
        super().__init__(how=how, count=count)

    def get_task_data(self):
        return {"masks": self.params.how()}

    def get_result_buffers(self):
        return {"dots": self.buffer("nav", extra_shape=(self.params.count,), dtype="float64")}

    def process_tile(self, tile):
        flat = tile.reshape(tile.shape[0], -1)
        self.results.dots += flat @ self.task_data.masks.get(self.meta.slice)


class DotParameter(ud.UDF):
    """The same with the container as a parameter."""

    def __init__(self, masks):
        super().__init__(masks=masks)

    def get_result_buffers(self):
        return {"dots": self.buffer("nav", extra_shape=(len(self.params.masks),), dtype="float64")}

    def process_tile(self, tile):
        flat = tile.reshape(tile.shape[0], -1)
        self.results.dots += flat @ self.params.masks.get(self.meta.slice)
