"""Computations with and without a cache, and a UDF whose results depend on the ROI."""

import copy
from pathlib import Path

import udfdask as ud


def computed(*results, **options):
    """The computed results."""
    return ud.compute(*results, **{"scheduler": "synchronous", **options})


def without_cache(*results):
    """The computed results; nothing is kept or read."""
    with ud.cache(None):
        return computed(*results)


def records(folder):
    """The files of all records of a journal or a cache."""
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
