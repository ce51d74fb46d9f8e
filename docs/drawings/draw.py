"""Write the drawings of the documentation: ``python docs/drawings/draw.py [FOLDER]``.

Pages include them with the directive ``raw``, not as images: only an SVG that is a part of the page
has the color and the font of its text, also if a reader switches the theme of the page. An image
follows the theme of the system instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

from svg import BLUE, GREEN, LINE, ORANGE, Drawing


def road() -> Drawing:
    """The stages of a run."""
    drawing = Drawing(
        "road",
        "The road of a run",
        "run_udf makes a plan, and the graph from the plan, in your process and without reading "
        "data. compute lets dask's scheduler run the tasks on workers: a task for each chunk, then "
        "merges. The end is the result.",
        720,
        226,
    )
    top, height, width, step = 58, 104, 106, 151
    drawing.rectangle(1, 1, 2 * step - 29, top + height + 8, dashed=True, line=1)
    drawing.rectangle(2 * step + 1, 1, 2 * step - 29, top + height + 8, dashed=True, line=1)
    for x, call, words in [
        (step - 14, "run_udf(...)", "at once, reads no data"),
        (3 * step - 14, "compute()", "dask runs tasks on workers"),
    ]:
        drawing.text(x, 24, call, anchor="middle", code=True)
        drawing.text(x, 24 + LINE, words, anchor="middle")
    stages = [
        ("plan", "makes every", "choice, calls", "every check", "Plan"),
        ("graph", "one task", "per chunk,", "then merges", "dask graph"),
        ("chunk", "cuts tiles,", "calls your", "UDF", "partial results"),
        ("merge", "combines", "the partial", "results", "arrays"),
        ("result", "arrays like", "the scan or", "a frame", ""),
    ]
    for number, (name, *lines, value) in enumerate(stages):
        x = 9 + number * step
        drawing.box(x, top, width, height, name, *lines)
        if value:
            middle = x + width + (step - width) / 2
            drawing.arrow((x + width + 3, top + height / 2), (x + step - 3, top + height / 2))
            drawing.line((middle, top + height / 2 + 8), (middle, 194), line=0.8)
            drawing.text(middle, 212, value, anchor="middle")
    return drawing


def merge_tree() -> Drawing:
    """Partial results become one result."""
    drawing = Drawing(
        "merge-tree",
        "The tree of merges",
        "A scan of 4 by 4 chunks. Each chunk gives one partial result. A merge combines four "
        "neighboring partial results into one, in the order of the chunks. A last merge combines "
        "these four. Then get_results runs once.",
        720,
        372,
    )
    side, left, gap = 30, 8, 16
    drawing.text(left, 18, "scan: 4 by 4 chunks")
    for number in range(16):
        x, y = left + number % 4 * side, 32 + number // 4 * side
        drawing.rectangle(x, y, side, side, BLUE, fill=0.22, line=1, round_=0)
        drawing.text(x + side / 2, y + 20, str(number + 1), anchor="middle")
    drawing.arrow((left + 4 * side + 6, 62), (184, 62))
    drawing.text(190, 18, "one partial result per chunk, in the order of the chunks")
    middles = []
    for group in range(4):
        start = 190 + group * (4 * side + gap)
        middles.append(start + 2 * side)
        for number in range(4):
            x = start + number * side
            drawing.rectangle(x, 46, side - 4, 32, BLUE, fill=0.22, line=1)
            drawing.text(x + side / 2 - 2, 67, str(4 * group + number + 1), anchor="middle")
            target = middles[-1] + 12 * (number - 1.5) - 2
            drawing.arrow((x + side / 2 - 2, 82), (target, 126), line=1)
        name = f"merge {4 * group + 1}-{4 * group + 4}"
        drawing.box(start, 130, 4 * side - 4, 34, name, color=ORANGE)
    middle = sum(middles) / 4 - 2
    for number, x in enumerate(middles):
        drawing.arrow((x - 2, 168), (middle + 20 * (number - 1.5), 220), line=1)
    drawing.box(middle - 75, 224, 150, 34, "merge 1-16", color=ORANGE)
    drawing.arrow((middle, 262), (middle, 286))
    drawing.box(middle - 75, 290, 150, 34, "get_results()", color=GREEN, code=True)
    drawing.arrow((middle, 328), (middle, 348))
    drawing.text(middle, 364, "result", anchor="middle", bold=True)
    rule = (
        "Each merge starts with fresh",
        "buffers from preprocess and",
        "combines its inputs in order.",
    )
    drawing.text(left, 236, *rule)
    drawing.text(middle + 90, 312, "runs once, at the end")
    return drawing


def tiles() -> Drawing:
    """A scan has chunks, a chunk has frames, and tiles are cut from these."""
    drawing = Drawing(
        "tiles",
        "Chunks, frames and tiles",
        "A scan of 6 by 8 positions with four chunks. One chunk has 3 by 4 positions, and so 12 "
        "frames. If frames are small, a tile is a stack of some whole frames. If frames are large, "
        "a tile is the same part of several frames.",
        720,
        320,
    )
    cell, left, top = 20, 8, 66
    drawing.text(left, 18, "the scan", bold=True)
    drawing.text(left, 18 + LINE, "6 by 8 positions,", "4 chunks")
    drawing.cells(left, top, 6, 8, cell)
    drawing.cells(left, top, 3, 4, cell, BLUE, fill=0.3)
    for row in range(2):
        for column in range(2):
            x, y = left + column * 4 * cell, top + row * 3 * cell
            drawing.rectangle(x, y, 4 * cell, 3 * cell, line=2.5, round_=0)
    drawing.text(left, top + 6 * cell + 24, "1 position = 1 frame")
    drawing.arrow((left + 8 * cell + 8, top + 30), (left + 8 * cell + 48, top + 30))
    x = 232
    drawing.text(x, 18, "one chunk", bold=True)
    drawing.text(x, 18 + LINE, "3 by 4 positions:", "12 frames")
    drawing.stack(x, top, 12, 80, 80, BLUE, step=7)
    drawing.text(x, top + 11 * 7 + 80 + 24, "1 chunk = 1 task")
    x = 456
    drawing.arrow((x - 56, 92), (x - 12, 92))
    drawing.arrow((x - 56, 124), (x - 28, 124), (x - 28, 236), (x - 12, 236))
    drawing.text(x, 18, "small frames", bold=True)
    drawing.text(x, 18 + LINE, "a tile is a stack of whole frames")
    for number in range(3):
        drawing.stack(x + number * 84, 52, 4, 50, 50, ORANGE, step=7)
        drawing.text(x + number * 84, 140, f"tile {number + 1}")
    drawing.text(x, 178, "large frames", bold=True)
    drawing.text(x, 178 + LINE, "a tile is one part of many frames")
    for number in range(2):
        drawing.stack(x + number * 128, 210, 6, 76, 38, ORANGE, step=7)
        drawing.text(x + number * 128, 304, f"tile {number + 1}, {('upper', 'lower')[number]} half")
    return drawing


def one_pass() -> Drawing:
    """Several UDFs share the loading of each chunk."""
    drawing = Drawing(
        "one-pass",
        "One pass for several UDFs",
        "Four chunks of a file. Each chunk is loaded once, by one task. In this task, three UDFs "
        "process the chunk. The partial results of each UDF are merged over all chunks, so that "
        "there are three results.",
        720,
        310,
    )
    drawing.text(8, 20, "chunks", bold=True)
    drawing.text(170, 20, "tasks", bold=True)
    colors = (BLUE, ORANGE, GREEN)
    columns = (294, 436, 578)
    names = ("SumUDF", "CoMUDF", "YourUDF")
    for x, name in zip(columns, names, strict=True):
        drawing.text(x + 60, 20, name, anchor="middle", code=True)
    for number in range(4):
        y = 36 + number * 48
        drawing.rectangle(8, y + 4, 92, 32, fill=0.12, line=1)
        drawing.text(54, y + 25, f"chunk {number + 1}", anchor="middle")
        drawing.arrow((104, y + 20), (152, y + 20))
        drawing.rectangle(156, y, 556, 40, line=1, dashed=True)
        drawing.text(216, y + 25, "load once", anchor="middle")
        drawing.arrow((256, y + 20), (288, y + 20))
        for x, color in zip(columns, colors, strict=True):
            drawing.rectangle(x, y + 6, 120, 28, color, fill=0.22)
            drawing.text(x + 60, y + 25, f"process {number + 1}", anchor="middle")
    drawing.text(170, 246, "merge", bold=True)
    drawing.text(170, 290, "results", bold=True)
    results = ("sum of frames", "shift per frame", "your result")
    for x, color, result in zip(columns, colors, results, strict=True):
        drawing.arrow((x + 60, 226), (x + 60, 266), color=color, line=3)
        drawing.rectangle(x, 270, 120, 32, color, fill=0.22)
        drawing.text(x + 60, 291, result, anchor="middle")
    return drawing


def halo() -> Drawing:
    """The two tasks of a chunk whose UDF sees neighbors."""
    drawing = Drawing(
        "halo",
        "A halo makes two tasks of a chunk",
        "A chunk of 6 by 6 scan positions among its neighbors, with a halo of one frame. The first "
        "task loads the chunk and processes the 16 inner positions, whose windows of 3 by 3 frames "
        "lie in the chunk. It sends margins to the neighboring chunks. The second task gets the "
        "margins of the neighbors, one frame wide, and processes the 20 positions at the borders.",
        720,
        384,
    )
    cell, left, top = 22, 8, 42
    drawing.text(left, 18, "one chunk of the scan and its neighbors")

    def area(row: int, column: int, rows: int, columns: int, color: str, fill: float) -> None:
        drawing.cells(left + column * cell, top + row * cell, rows, columns, cell, color, fill=fill)

    drawing.cells(left, top, 12, 12, cell)
    for row, column, rows, columns in [(2, 2, 1, 8), (9, 2, 1, 8), (3, 2, 6, 1), (3, 9, 6, 1)]:
        area(row, column, rows, columns, GREEN, 0.3)
    for row, column, rows, columns in [(3, 3, 1, 6), (8, 3, 1, 6), (4, 3, 4, 1), (4, 8, 4, 1)]:
        area(row, column, rows, columns, ORANGE, 0.4)
    area(4, 4, 4, 4, BLUE, 0.35)
    for place in (3, 9):
        x, y = left + place * cell, top + place * cell
        drawing.line((x, top), (x, top + 12 * cell), line=3)
        drawing.line((left, y), (left + 12 * cell, y), line=3)
    for row, column in [(4, 4), (7, 8)]:  # the windows of two positions
        x, y = left + (column - 1) * cell, top + (row - 1) * cell
        drawing.rectangle(x + 3, y + 3, 3 * cell - 6, 3 * cell - 6, line=2, dashed=True, round_=2)
        drawing.text(x + 1.5 * cell, y + 1.5 * cell + 5, "●", anchor="middle")
    legend = [
        ("inner positions", BLUE, 0.35),
        ("positions at borders", ORANGE, 0.4),
        ("margins of neighbors", GREEN, 0.3),
    ]
    y = top + 12 * cell + 14
    for number, (words, color, fill) in enumerate(legend):
        drawing.rectangle(left + 1, y + number * 20, 22, 14, color, fill=fill, line=0.6, round_=0)
        drawing.text(left + 32, y + number * 20 + 12, words)
    drawing.rectangle(left + 177, y, 22, 14, line=2, dashed=True, round_=2)
    drawing.text(left + 208, y + 12, "window of ●")
    drawing.line((left + 177, y + 27), (left + 199, y + 27), line=3)
    drawing.text(left + 208, y + 32, "border of chunks")

    x, width = 340, 236
    first = (
        "loads the chunk, processes",
        "the inner positions, keeps",
        "the frames at the borders",
    )
    second = ("processes the positions at", "the borders, with the margins", "of the other chunks")
    drawing.box(x, 12, width, 116, "first task of the chunk", *first, color=BLUE)
    drawing.box(x, 216, width, 100, "second task of the chunk", *second, color=ORANGE)
    drawing.box(616, 110, 100, 124, "neighbors", "the tasks of", "the chunks", "around it")
    drawing.arrow((x + 60, 132), (x + 60, 212), color=BLUE, line=3)
    drawing.text(x + 72, 166, "buffers and", "border frames")
    drawing.arrow((x + width + 4, 70), (666, 70), (666, 106), color=GREEN, line=3)
    drawing.text(x + width + 8, 58, "margins out")
    drawing.arrow((666, 238), (666, 272), (x + width + 4, 272), color=GREEN, line=3)
    drawing.text(x + width + 8, 294, "margins in")
    drawing.arrow((x + width / 2, 320), (x + width / 2, 346))
    drawing.text(x + width / 2, 364, "partial result of the chunk", anchor="middle")
    return drawing


DRAWINGS = (road, merge_tree, tiles, one_pass, halo)


def main(folder: Path) -> None:
    """Write all drawings into a folder."""
    for draw in DRAWINGS:
        drawing = draw()
        (folder / f"{drawing.name}.svg").write_text(drawing.svg(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
