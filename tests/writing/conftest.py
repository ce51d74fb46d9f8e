"""Small disks to fill, and disks that cannot be written to."""

import subprocess
import sys

import pytest


@pytest.fixture
def small_disk(tmp_path):
    """A function that mounts a file system with options, as root may, and returns its folder."""
    mounted = []

    def mount(options):
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if (
            sys.platform != "linux"
            or subprocess.run(command, capture_output=True, check=False).returncode
        ):
            pytest.skip("mounting a file system is not allowed here")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)
