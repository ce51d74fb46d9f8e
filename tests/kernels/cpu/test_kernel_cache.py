"""Compiled kernels on disks that are full, read-only, damaged, or shared by several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import udfdask
from making import LATE
from udfdask.kernels.numba_internals.compile import DIGEST, KernelFiles

pytestmark = pytest.mark.full

PACKAGE = Path(udfdask.__file__).parent

KERNELS = """
from udfdask.kernels.numba_internals.compile import kernel

@kernel
def double(x):
    return x * 2

@kernel
def halve(x):
    return x / 2
"""

CALLS = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import kernels
    numbers = [int(a) if a.isdigit() else float(a) for a in sys.argv[1:]] or [4, 1.5]
    values = [f(x) for x in numbers for f in (kernels.double, kernels.halve)]
hits = sum(sum(f.stats.cache_hits.values()) for f in (kernels.double, kernels.halve))
told = [str(w.message) for w in seen if "cannot be saved" in str(w.message)]
print(json.dumps({"values": values, "hits": hits, "told": told, "others": len(seen) - len(told)}))
"""

LOADS_COMPILER = """
import json, sys, kernels
kernels.double(4)
before = "numba.np.arraymath" in sys.modules
values = [kernels.double(4), kernels.double(True)]
print(json.dumps([before, values, "numba.np.arraymath" in sys.modules]))
"""

RUN = """
import json, warnings
import dask.array as da, udfdask as ud
from udfdask.udfs import SumSigUDF, SumUDF
x = da.ones((4, 3, 2, 2), chunks=(1, 3, 2, 2), dtype="uint8")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    total, sums = ud.compute(*ud.run_udf(x, [SumUDF(), SumSigUDF()]), scheduler="threads")
values = [int(total["intensity"].sum()), int(sums["intensity"].sum())]
print(json.dumps({"values": values, "told": [str(w.message) for w in seen]}))
"""

EXPECTED = [8, 2.0, 3.0, 0.75]


@pytest.fixture
def folder(tmp_path):
    """Make a folder with kernels, and a script that calls each of them with two types."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "calls.py").write_text(CALLS)
    (tmp_path / "run.py").write_text(RUN)
    (tmp_path / "cache").mkdir()
    return tmp_path


def environment(folder, **more):
    paths = os.pathsep.join([str(PACKAGE.parent), str(folder)])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    return {**kept, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder / "cache"), **more}


def output_of(folder, command, **more):
    """Run a program in a separate process and return what it prints."""
    done = subprocess.run(
        command,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
    )
    if "mount:" in done.stderr:
        pytest.skip(f"mounting is refused: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def call(folder, script="calls.py", **more):
    """Run the script in a separate process and return its output."""
    return output_of(folder, [sys.executable, str(folder / script)], **more)


def call_mounted(folder, mounts, script="calls.py", **more):
    """Do the same after shell commands that mount something for this process only."""
    if sys.platform != "linux":
        pytest.skip("mounts of one process are Linux's")
    try:
        allowed = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no command unshare")
    if allowed.returncode:
        pytest.skip(f"mounting is refused: {allowed.stderr.decode().strip()}")
    shell = f"{mounts}\nexec {sys.executable} {folder / script}"
    return output_of(folder, ["unshare", "--mount", "sh", "-ec", shell], **more)


def full(folder):
    """Return commands that mount a full disk over the cache."""
    cache = folder / "cache"
    fill = f"! dd if=/dev/zero of={cache}/rest bs=1k 2>/dev/null"
    return f"mount -t tmpfs -o size=32k none {cache}\n{fill}"


def files(folder):
    return sorted((folder / "cache").glob("*/*"))


def test_a_full_disk(folder):
    found = call_mounted(folder, full(folder))
    assert found["values"] == EXPECTED
    assert len(found["told"]) == 1
    assert "NUMBA_CACHE_DIR" in found["told"][0]


def test_a_run_on_a_full_disk(folder):
    found = call_mounted(folder, full(folder), "run.py")
    assert found["values"] == [48, 48]
    assert len(found["told"]) == 1
    assert "No space left on device" in found["told"][0]


def test_a_cache_that_can_only_be_read(folder):
    """numba uses the next folder: here next to the source."""
    call(folder)
    cache = folder / "cache"
    found = call_mounted(folder, f"mount --bind {cache} {cache}\nmount -o remount,ro,bind {cache}")
    assert found == {"values": EXPECTED, "hits": 0, "told": [], "others": 0}
    assert len(list((folder / "__pycache__").glob("*.nbc"))) == 4


def test_no_place_at_all(folder):
    """The package belongs to another user, and there is no home folder."""
    mounts = f"mount --bind {folder} {folder}\nmount -o remount,ro,bind {folder}"
    nowhere = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(folder), "HOME": ""}
    found = call_mounted(folder, mounts, **nowhere)
    assert found["values"] == EXPECTED
    assert len(found["told"]) == 1


def test_a_disk_that_becomes_read_only(folder):
    """The disk changes after the import of the kernels, before the first one is compiled."""
    script = (folder / "calls.py").read_text()
    command = f"mount -o remount,ro {folder / 'cache'}"
    late = f"import kernels, subprocess; subprocess.run({command!r}.split(), check=True)"
    (folder / "calls.py").write_text(script.replace("import kernels", late))
    found = call_mounted(folder, f"mount -t tmpfs none {folder / 'cache'}")
    assert found["values"] == EXPECTED
    assert len(found["told"]) == 1
    assert "Read-only" in found["told"][0]


def test_only_new_versions_load_the_compiler(folder):
    (folder / "loads.py").write_text(LOADS_COMPILER)
    call(folder)
    assert call(folder, "loads.py") == [False, [8, 2], True]


def test_code_for_another_processor_is_not_loaded(folder):
    """For example in a home folder that machines share."""
    call(folder)
    for hits in (0, 4):
        assert call(folder, NUMBA_CPU_NAME="generic")["hits"] == hits
    assert call(folder)["hits"] == 4


def test_damaged_files(folder):
    """One is truncated, one is empty, one has a wrong bit, and one is a folder."""
    call(folder)
    cut, empty, flipped, other = files(folder)
    cut.write_bytes(cut.read_bytes()[:1000])
    empty.write_bytes(b"")
    content = bytearray(flipped.read_bytes())
    content[len(content) // 2] ^= 1
    flipped.write_bytes(content)
    other.unlink()
    other.mkdir()
    found = call(folder)
    assert found["values"] == EXPECTED
    assert found["hits"] == 0
    assert len(found["told"]) == 1
    assert "Is a directory" in found["told"][0]


def test_many_processes_at_once(folder):
    """Each compiles other versions of the same kernels; no process loads a wrong one."""
    arguments = [["4"], ["1.5", "4"]]
    command = [sys.executable, str(folder / "calls.py")]
    options = {"env": environment(folder), "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*command, *args], **options) for args in arguments]
    answers = [json.loads(process.communicate(timeout=LATE)[0]) for process in started]
    for args, answer in zip(arguments, answers, strict=True):
        expected = [f(float(a)) for a in args for f in (lambda x: 2 * x, lambda x: x / 2)]
        assert answer["values"] == expected
        assert not answer["told"]
    assert call(folder) == {"values": EXPECTED, "hits": 4, "told": [], "others": 0}


def test_a_file_of_another_key_is_never_read(tmp_path):
    """Files with numbers would fail here: after a full disk, an old index refers to new files."""
    old, new = (KernelFiles(tmp_path, "f", stamp) for stamp in ("old", "new"))
    old.save("key", 1)
    assert new.load("key") is None
    new.save("key", 2)
    new.save("other", 3)
    assert (new.load("key"), new.load("other"), old.load("key")) == (2, 3, None)
    assert np.all([path.stat().st_size > DIGEST for path in tmp_path.iterdir()])
    new.flush()
    assert not list(tmp_path.iterdir())


def test_a_saved_kernel_returns_the_bits_of_the_process_that_compiled_it(tmp_path):
    (tmp_path / "sums.py").write_text("""
import json
import numpy as np
from udfdask.kernels.cpu.tile_sums import sums_of, walk_sums

tile = np.random.default_rng(1).normal(size=(37, 30, 41)) * 100
moments, of_frames = sums_of(tile)
bits = [array.tobytes().hex() for array in (*moments, of_frames)]
print(json.dumps([bits, sum(walk_sums.stats.cache_hits.values())]))
""")
    (first, compiled), (second, loaded) = (call(tmp_path, "sums.py") for _ in range(2))
    assert (compiled, loaded) == (0, 1)
    assert first == second
