"""Compare the built-in UDFs with the limits of the machine, for each width of vectors.

    python asv_bench/vector_widths.py [--gigabytes 0.4] [--dtypes uint8,float32] [--works sum,com]

runs `roofline.py` three times on an x86 processor: as it is, and with numba, OpenBLAS and NumPy
restricted to vectors of 256 bits (AVX2) and of 128 bits (SSE 4.2, without fused multiply-add). It
prints one table, and with ``--write PAGE`` replaces the marked part of that page. Each run takes
10 to 30 minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from roofline import WORKS

START, STOP = "<!-- widths: start -->", "<!-- widths: stop -->"

WIDTHS = {
    "as it is": {},
    "256 bits": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt,+cx16,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "128 bits": {
        "NUMBA_CPU_NAME": "nehalem",
        "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt,+cx16",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    },
}
"""The environment variables of each width."""


def measured(variables: dict[str, str], options: list[str]) -> dict[str, Any]:
    """Return the ratios of `roofline.py` in a process with these environment variables."""
    script = Path(__file__).with_name("roofline.py")
    with tempfile.TemporaryDirectory() as made:
        found = Path(made) / "ratios.json"
        command = [sys.executable, str(script), "--save", str(found), *options]
        subprocess.run(command, env={**os.environ, **variables}, check=True)
        result: dict[str, Any] = json.loads(found.read_text())
    return result


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return a table: a row for each dtype and work, and columns for each width."""
    cells = {
        width: {(dtype, work): ratios for dtype, work, *ratios in one["ratios"]}
        for width, one in found.items()
    }
    titles = [f"{width}: of the limit | LiberTEM / udfdask" for width in found]
    lines = [f"| dtype | work | {' | '.join(titles)} |", "|---" * (2 + 2 * len(found)) + "|"]
    for dtype, work in next(iter(cells.values())):
        ratios = [ratio for of_width in cells.values() for ratio in of_width[dtype, work]]
        texts = ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        lines.append(f"| {dtype} | {WORKS[work]} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure all widths, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="page whose marked part is replaced")
    args, options = parser.parse_known_args(arguments)
    found = {width: measured(variables, options) for width, variables in WIDTHS.items()}
    about = [f"{width}: {one['about']}" for width, one in found.items()]
    text = f"Measured {time.strftime('%Y-%m-%d')}. {'; '.join(about)}.\n\n{table(found)}"
    print(text)
    if args.write:
        before, rest = args.write.read_text().split(START)
        args.write.write_text(f"{before}{START}\n{text}\n{STOP}{rest.split(STOP)[1]}")


if __name__ == "__main__":
    main()
