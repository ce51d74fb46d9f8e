"""UDFs that hang, end their process, or fill its memory at one position of the scan."""

import os

import udfdask as ud

POSITION = (3, 1)
"""Where it happens: in chunk (1, 0) of `DATA_CHUNKS`."""
SHAPE, DATA_CHUNKS = (4, 4, 2, 2), (2, 2, 2, 2)


class Sums(ud.UDF):
    """The sum of each frame; subclasses do something else at one position first."""

    def get_result_buffers(self):
        return {"sums": self.buffer("nav", dtype="float64")}

    def process_frame(self, frame):
        if tuple(self.meta.coordinates[0]) == POSITION:
            self.stop()
        self.results.sums[:] = frame.sum()

    def stop(self):
        """Does nothing."""


class Exits(Sums):
    """Ends its process."""

    def stop(self):
        os._exit(3)
