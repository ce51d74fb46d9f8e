"""What a fresh process pays before its first run."""

from __future__ import annotations

import subprocess
import sys

COUNT = "import sys; before = set(sys.modules); import udfdask; print(len({*sys.modules} - before))"


class Imports:
    """Imports, each in a process of its own. That of dask is part of the others."""

    timeout = 600

    def timeraw_dask_array(self) -> str:
        return "import dask.array"

    def timeraw_udfdask(self) -> str:
        return "import udfdask"

    def timeraw_udfs(self) -> str:
        return "import udfdask.udfs"

    def timeraw_command_line(self) -> str:
        return "import udfdask.cli"

    def track_modules(self) -> int:
        done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, check=True)
        return int(done.stdout)

    track_modules.unit = "modules"
