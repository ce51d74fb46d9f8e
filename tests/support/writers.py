"""Processes that write files and stores, and are killed while they do; run as a script.

`kill` kills a writer before and after each of its calls that change something on the disk, looks at
what is there, and lets the next writer look. `write` writes again and again.
"""

import json
import os
import signal
import sys
from pathlib import Path

from udfdask.writing import NPZ, ZARR, check_target, replacing

ARRAY = '{"zarr_format": 3, "node_type": "array", "shape": [2]}'
CHANGES = ["mkdir", "open", "rename", "replace", "rmdir", "unlink", "fsync", "chmod"]


def write(target, word, *, overwrite=True):
    """Write a file or a store, all parts of which say the same word."""
    kind = NPZ if target.suffix == ".npz" else ZARR
    with replacing(check_target(target, kind, overwrite=overwrite)) as new:
        if kind is NPZ:
            new.write_bytes(b"PK\x03\x04" + word.encode() * 20_000)
            return
        (new / "c").mkdir(parents=True)
        (new / "zarr.json").write_text(ARRAY)
        for number in range(2):
            (new / "c" / str(number)).write_text(word)


def read(target):
    """The words in a file or store, in order: one, if it is complete; none, if it is not there."""
    try:
        if target.is_file():
            content = target.read_bytes().removeprefix(b"PK\x03\x04").decode()
            length = len(content) // 20_000
            parts = {content[k : k + length] for k in range(0, len(content), max(1, length))}
            return sorted(parts)
        return sorted({(target / "c" / str(k)).read_text() for k in range(2)})
    except FileNotFoundError:
        return ["missing"] if target.exists() else []


def hidden(folder):
    """Names of hidden files and folders."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


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
    """Kill a writer at each step; return for each what was there, and after the next writer."""
    found, survived, step = [], False, -1
    while not survived:
        step += 1
        if first:
            write(target, "old")
        elif target.exists():
            target.rename(target.with_name(f"done{step}"))
        child = os.fork()
        if child == 0:
            die_at(step)
            write(target, "new")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        there = read(target)
        left = len(hidden(target.parent))
        check_target(target, NPZ if target.suffix == ".npz" else ZARR, overwrite=True)
        found.append([there, left, read(target), hidden(target.parent)])
        survived = os.WIFEXITED(status)
    return found


def say(text):
    """Tell the process that has started this one."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main():
    """Do what the arguments say; print what was found."""
    action, target, *rest = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    if action == "kill":
        say(json.dumps(kill(target, "first" in rest)))
    elif action == "write":
        say("ready")
        for _ in range(int(rest[1])):
            write(target, rest[0])


if __name__ == "__main__":
    main()
