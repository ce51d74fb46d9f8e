"""`--scheduler` and `--insecure-scheduler`; the recipe for TLS in
docs/user-guide/operations/clusters.md.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from fences import read_fences
from making import LATE, wait_until
from udfdask.cli import main
from udfdask.cli.scheduler_option import check_scheduler

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user-guide" / "operations" / "clusters.md"


@pytest.mark.parametrize(
    "scheduler",
    [
        *(None, "threads", "processes", "synchronous"),
        *("tcp://127.0.0.1:8786", "tcp://127.1.2.3:1", "tcp://localhost:8786", "tcp://[::1]:8786"),
        *(
            "inproc://192.168.1.2/1/1",
            "tls://10.0.0.1:8786",
            "wss://node7:8786",
            "ws://localhost:1",
        ),
    ],
)
def test_schedulers_that_are_safe(scheduler):
    check_scheduler(scheduler, insecure=False)


@pytest.mark.parametrize(
    "scheduler",
    [
        *("tcp://10.0.0.1:8786", "tcp://node7:8786", "tcp://[fe80::1]:8786", "ws://node7:8786"),
        *("tcp://localhost.example.org:8786", "tcp://127.0.0.1.example.org:8786", "ucx://node7:1"),
        *("tcp://:8786", "tcp://[::1:8786", "tcp://0.0.0.0:8786", "TCP://8.8.8.8:1"),
        *("tcp://127.0.0.1:1@8.8.8.8:8786", "tcp://localhost:1@node7:8786"),
    ],
)
def test_schedulers_that_are_not(scheduler):
    with pytest.raises(click.BadParameter, match=r"not on this machine and not encrypted") as found:
        check_scheduler(scheduler, insecure=False)
    for remedy in ("tls://", "ssh -L", "--insecure-scheduler"):
        assert remedy in found.value.message
    check_scheduler(scheduler, insecure=True)


@pytest.fixture
def scan(tmp_path):
    np.save(tmp_path / "scan.npy", np.ones((4, 4, 8, 8)))
    return str(tmp_path / "scan.npy")


def run(*arguments):
    return CliRunner().invoke(main, ["run", *arguments])


def test_refused_before_anything_is_read(tmp_path):
    outcome = run(str(tmp_path / "none.npy"), "--scheduler", "tcp://10.0.0.1:8786")
    assert outcome.exit_code == 2
    assert "any code" in " ".join(outcome.output.split())


def test_a_name_that_is_no_scheduler(scan):
    outcome = run(scan, "--scheduler", "dask", "--insecure-scheduler")
    assert outcome.exit_code == 2
    assert "not an address" in outcome.output


@pytest.mark.full
@pytest.mark.skipif(shutil.which("openssl") is None, reason="the recipe needs openssl")
def test_the_recipe_for_tls(scan, tmp_path, monkeypatch):
    """The shell commands make certificates; the Python code runs over an encrypted connection."""
    pytest.importorskip("distributed")
    section = PAGE.read_text(encoding="utf-8").partition("## Who can use a scheduler")[2]
    assert "run any code" in " ".join(section.split())
    fences = [f for f in read_fences(PAGE) if f.text.strip() and f.text in section]
    (shell,) = [f.text for f in fences if f.language == "bash" and "openssl" in f.text]
    subprocess.run(["bash", "-euc", shell], cwd=tmp_path, check=True, capture_output=True)
    for key in ("ca-key.pem", "key.pem"):
        assert (tmp_path / key).stat().st_mode & 0o077 == 0
    (code,) = [f.text for f in fences if f.language == "python" and "Security" in f.text]
    code = "if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in code.splitlines())
    (tmp_path / "recipe.py").write_text(code)
    command = [sys.executable, "recipe.py"]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=LATE
    )
    assert re.search(r"tls://127\.0\.0\.1:\d+\n16\.0\n", done.stdout)
    (settings,) = [f.text for f in fences if f.language == "yaml"]
    (tmp_path / "tls.yaml").write_text(settings)
    plain = {k: v for k, v in os.environ.items() if k != "DASK_CONFIG"}
    tls = {**plain, "DASK_CONFIG": str(tmp_path / "tls.yaml")}
    with running("scheduler", "--host", "tls://127.0.0.1", "--port", "0", folder=tmp_path, env=tls):
        address = json.loads(text_of(tmp_path / "scheduler.json"))["address"]
        assert address.startswith("tls://127.0.0.1:")

        def use_it(env):
            command = [sys.executable, "-m", "udfdask", "run", scan, "--scheduler", address]
            return subprocess.run(
                command,
                check=False,
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=LATE,
            )

        refused = use_it(plain)
        assert refused.returncode == 1
        assert "Traceback" not in refused.stderr
        with running("worker", "--no-nanny", folder=tmp_path, env=tls):
            done = use_it(tls)
        assert done.returncode == 0, done.stderr
        assert "sumsig" in done.stdout


@contextmanager
def running(name, *arguments, folder, env):
    """A scheduler or a worker that writes and reads the address in a file."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard"]
    command += ["--scheduler-file", "scheduler.json", *arguments]
    with (folder / f"{name}.log").open("wb") as log:  # nobody has to read it while it grows
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()


def text_of(path):
    """What another process writes into a file."""
    wait_until(lambda: path.exists() and path.stat().st_size)
    return path.read_text()
