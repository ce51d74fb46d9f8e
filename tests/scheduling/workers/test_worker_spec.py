"""Workers for machines with CUDA devices."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from making import LATE
from stand_in import numpy_standing_in_for_cupy
from udfdask.cluster import visible_devices, worker_commands, worker_spec
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.scheduling.workers.wait_for_workers import workers_of

pytestmark = pytest.mark.full

distributed = pytest.importorskip("distributed", reason="distributed is an extra")


def setting(name):
    """What is set in the environment of the worker that runs this."""
    return os.environ.get(name)


def test_workers_of_a_cluster(mixed):
    info = workers_of(mixed)
    resources = {str(worker["id"]): worker["resources"] for worker in info.values()}
    assert resources == {"cuda-0": {"CUDA": 1}, "cpu-0": {}, "cpu-1": {}}
    names = {address: worker["id"] for address, worker in info.items()}
    seen = mixed.run(setting, "CUDA_VISIBLE_DEVICES")
    assert {names[a]: value for a, value in seen.items()} == {
        "cuda-0": "0",
        "cpu-0": "",
        "cpu-1": "",
    }
    threads = mixed.run(setting, "OPENBLAS_NUM_THREADS")
    assert set(threads.values()) == {"1"}


def test_a_worker_for_each_device():
    spec = worker_spec(cuda_devices=[1, "GPU-8932f937"], cuda_threads=3, cpu_workers=1, threads=2)
    assert list(spec) == ["cuda-0", "cuda-1", "cpu-0"]
    assert {worker["cls"] for worker in spec.values()} == {distributed.Nanny}
    options = [worker["options"] for worker in spec.values()]
    assert [o["nthreads"] for o in options] == [3, 3, 2]
    assert [o.get("resources") for o in options] == [{"CUDA": 1}, {"CUDA": 1}, None]
    devices = [o["env"]["CUDA_VISIBLE_DEVICES"] for o in options]
    assert devices == ["1", "GPU-8932f937", ""]


def test_more_options():
    spec = worker_spec(
        cuda_devices=[0],
        cpu_workers=1,
        memory_limit="1 GB",
        env={"A": "b", "CUDA_VISIBLE_DEVICES": "7"},
    )
    for worker in spec.values():
        assert worker["options"]["memory_limit"] == "1 GB"
        assert worker["options"]["env"]["A"] == "b"
    assert spec["cuda-0"]["options"]["env"]["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.parametrize(
    ("cores", "arguments", "n_cpu"),
    [
        (8, {}, 7),
        (8, {"cuda_threads": 4}, 4),
        (8, {"threads": 2}, 3),
        (8, {"cpu_workers": 2}, 2),
        (8, {"cpu_workers": 0}, 0),
        (1, {}, 1),
    ],
)
def test_cores_that_are_left(cores, arguments, n_cpu, monkeypatch):
    monkeypatch.setattr("udfdask.cluster.CPU_COUNT", cores)
    spec = worker_spec(cuda_devices=["0"], **arguments)
    assert sum(name.startswith("cpu-") for name in spec) == n_cpu


@pytest.mark.parametrize(
    ("visible", "wanted"),
    [(None, ("0",)), ("3", ("3",)), (" MIG-1 ,5", ("MIG-1",)), ("GPU-1", ("GPU-1",))],
)
def test_devices_that_this_process_may_use(visible, wanted, monkeypatch):
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with numpy_standing_in_for_cupy():  # one device
        assert visible_devices() == wanted
        assert worker_spec(cpu_workers=0).keys() == {"cuda-0"}
        (line,) = worker_commands("tcp://host:1", cpu_workers=0)
        assert line.startswith(f"CUDA_VISIBLE_DEVICES={wanted[0]} dask worker tcp://host:1 ")


def test_command_lines():
    cuda, cpu = worker_commands(
        "tcp://10.0.0.1:8786",
        cuda_devices=["GPU-1"],
        cpu_workers=5,
        threads=2,
        options=["--memory-limit", "16 GB"],
    )
    words = shlex.split(cuda)
    assert words[:4] == ["CUDA_VISIBLE_DEVICES=GPU-1", "dask", "worker", "tcp://10.0.0.1:8786"]
    assert words[-2:] == ["--memory-limit", "16 GB"]
    assert "--resources CUDA=1" in cuda
    assert cpu.startswith("CUDA_VISIBLE_DEVICES= dask worker ")
    assert "--nthreads 2 --nworkers 5" in cpu
    assert "--resources" not in cpu
    names = [words[words.index("--name") + 1] for words in map(shlex.split, (cuda, cpu))]
    assert len(set(names)) == 2


def test_what_a_command_line_starts(mixed, tmp_path):
    """Its worker joins the cluster, and carries the tag."""
    (line,) = worker_commands(
        mixed.scheduler.address,
        cuda_devices=[7],
        cpu_workers=0,
        options=["--no-dashboard", "--local-directory", str(tmp_path), "--no-nanny"],
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with subprocess.Popen(
        f"exec env {line}",
        shell=True,
        stderr=subprocess.PIPE,
        env={**os.environ, "PATH": path},
    ) as process:
        try:
            mixed.wait_for_workers(4, timeout=LATE)
            info = workers_of(mixed).values()
            (new,) = [worker for worker in info if str(worker["id"]).endswith("-cuda-0")]
            assert new["resources"] == {"CUDA": 1}
        finally:
            process.terminate()
            process.communicate(timeout=LATE)
            while len(workers_of(mixed)) > 3:
                time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"cpu_workers": -1}, ArgumentValueError, "cpu_workers must be an integer of at least 0"),
        ({"cpu_workers": 1.5}, ArgumentTypeError, "cpu_workers must be an integer .* not 1.5"),
        ({"threads": 0}, ArgumentValueError, "threads must be an integer of at least 1, not 0"),
        ({"threads": True}, ArgumentTypeError, "threads must be an integer"),
        ({"cuda_threads": 0}, ArgumentValueError, "cuda_threads must be an integer of at least 1"),
        ({"cuda_devices": 2}, ArgumentTypeError, r"list of numbers or names .* got 2"),
        ({"cuda_devices": "0,1"}, ArgumentTypeError, r"got '0,1'"),
        ({"cuda_devices": [0.5]}, ArgumentTypeError, r"got \[0.5\]"),
        ({"cuda_devices": [-1]}, ArgumentValueError, r"cuda_devices contains \['-1'\]"),
        ({"cuda_devices": ["0,1"]}, ArgumentValueError, r"contains \['0,1'\]: list each device"),
        ({"cuda_devices": [1, "1"]}, ArgumentValueError, r"contains \['1'\] more than once"),
        ({"cuda_devices": [], "cpu_workers": 0}, ArgumentValueError, "no worker at all"),
    ],
)
def test_bad_input(arguments, error, match):
    for make in (worker_spec, lambda **given: worker_commands("tcp://host:1", **given)):
        with pytest.raises(error, match=match):
            make(**arguments)


def test_an_address_that_is_none():
    with pytest.raises(ArgumentTypeError, match=r"scheduler must be an address .* got 8786"):
        worker_commands(8786)
