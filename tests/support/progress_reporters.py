"""Reporters that keep what they are told, and UDFs that tests of progress wait for."""

import contextlib
import itertools
import os
import signal
from pathlib import Path

import numpy as np

from making import wait_until
from udf_zoo import Rows

NUMBERS = ("num_frames_{}", "num_bytes_{}", "num_part_{}")


class Kept:
    """Keeps what it is told, and checks what is always true of it."""

    def __init__(self):
        self.told = []

    def start(self, state):
        assert not self.told
        self.tell("start", state)

    def update(self, state):
        self.tell("update", state)

    def end(self, state):
        self.tell("end", state)

    def tell(self, event, state):
        assert "end" not in self.events
        assert (event == "start") == (not self.told)
        assert (event == "end") == (state.status != "running")
        for number in NUMBERS:
            done = getattr(state, number.format("complete"))
            total = getattr(state, number.format("total"))
            assert 0 <= done <= total
            assert type(done) is type(total) is int
            if self.told:
                assert done >= getattr(self.last, number.format("complete"))
                assert total == getattr(self.last, number.format("total"))
                assert state.progress_id == self.last.progress_id
        self.told.append((event, state))

    @property
    def events(self):
        return [event for event, _ in self.told]

    @property
    def states(self):
        return [state for _, state in self.told]

    @property
    def last(self):
        return self.told[-1][1]

    @property
    def frames(self):
        """The numbers of frames told of, each once."""
        return list(dict.fromkeys(state.num_frames_complete for state in self.states))

    def assert_finished(self, frames, nbytes, chunks):
        last = self.last
        assert self.events[0] == "start"
        assert self.events[-1] == "end"
        assert last.status == "finished"
        assert (last.num_frames_total, last.num_frames_complete) == (frames, frames)
        assert (last.num_bytes_total, last.num_bytes_complete) == (nbytes, nbytes)
        assert (last.num_part_total, last.num_part_complete) == (chunks, chunks)


class Fails:
    def __init__(self, event, error):
        self.event, self.error = event, error
        self.called = []

    def __getattr__(self, name):
        if name not in ("start", "update", "end"):
            raise AttributeError(name)

        def method(state):
            self.called.append((name, state.status))
            if name == self.event:
                raise self.error

        return method


class Gated(Rows):
    """The chunk that starts as number n waits until the reporter has heard of n chunks."""

    def __init__(self, folder):
        super().__init__(folder=str(folder))

    def get_task_data(self):
        folder = Path(self.params.folder)
        for number in itertools.count():
            with contextlib.suppress(FileExistsError):
                (folder / f"started-{number}").touch(exist_ok=False)
                break
        wait_until((folder / f"told-{number}").exists)
        return {}


class OpensGate(Kept):
    """Says in a folder of how many chunks it has heard."""

    def __init__(self, folder):
        super().__init__()
        self.folder = Path(folder)

    def tell(self, event, state):
        super().tell(event, state)
        for number in range(state.num_part_complete + 1):
            (self.folder / f"told-{number}").touch()


class Interrupts(Rows):
    """Somebody presses Ctrl-C, once, at the last frame of the scan."""

    def process_frame(self, frame):
        ny, nx = self.meta.dataset_shape.nav
        if self.meta.coordinates[0].tolist() == [ny - 1, nx - 1]:
            os.kill(os.getpid(), signal.SIGINT)
        super().process_frame(frame)


class Weighs(Rows):
    """Uses a large parameter."""

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() * np.mean(self.params.weights)
