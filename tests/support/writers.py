"""Processes that write files and stores, and are killed while they do; run as a script."""

import json
import os
import signal
import sys
from pathlib import Path

from udfdask.writing import check_target, replacing

GROUP = '{"zarr_format": 3, "node_type": "group"}'
CHANGES = ["mkdir", "open", "rename", "replace", "rmdir", "unlink", "fsync"]


def write(target, word, *, overwrite=True):
    """Write a file or a store, all parts of which say the same word."""
    is_store = target.suffix == ".zarr"
    with replacing(check_target(target, is_store=is_store, overwrite=overwrite)) as new:
        if not is_store:
            new.write_text(word * 20_000)
            return
        for number in range(2):
            part = new / str(number)
            part.mkdir(parents=True)
            (part / "zarr.json").write_text(GROUP)
            (part / "word").write_text(word)
        (new / "zarr.json").write_text(GROUP)


def read(target):
    """The words in a file or store, in order: one, if it is complete; none, if it is not there."""
    try:
        if target.is_file():
            content = target.read_text()
            length = len(content) // 20_000
            parts = {content[k : k + length] for k in range(0, len(content), max(1, length))}
            return sorted(parts)
        return sorted({(target / str(k) / "word").read_text() for k in range(2)})
    except FileNotFoundError:
        return ["missing"] if target.exists() else []


def die_at(step):
    """Have this process kill itself at a step: before (even) or after (odd) each change."""
    steps = iter(range(10**6))

    def deadly(function):
        def call(*args, **kwargs):
            if next(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            found = function(*args, **kwargs)
            if next(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return call

    for name in CHANGES:
        setattr(os, name, deadly(getattr(os, name)))


def kill(target, first):
    """Kill a writer at each step; return what was there each time, by name."""
    found, survived, step = [], False, -1
    while not survived:
        step += 1
        folder = target.parent / str(step)
        folder.mkdir()
        one = folder / target.name
        if first:
            write(one, "old")
        child = os.fork()
        if child == 0:
            die_at(step)
            write(one, "new")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        shown = [path for path in folder.iterdir() if not path.name.startswith(".")]
        found.append({path.name: read(path) for path in shown})
        survived = os.WIFEXITED(status)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(kill(Path(sys.argv[1]), "first" in sys.argv[2:])))
