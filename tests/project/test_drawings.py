"""The drawings of the documentation are what their script writes, and pages can hold them."""

import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from making import LATE

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "drawings"
DRAWINGS = sorted(FOLDER.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
PAGES = {page: page.read_text("utf-8") for page in sorted(DOCS.glob("**/*.md"))}


def test_the_script_writes_what_is_committed(tmp_path):
    subprocess.run([sys.executable, FOLDER / "draw.py", tmp_path], check=True, timeout=LATE)
    written = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(written) == 5
    assert written == {file.name: file.read_bytes() for file in DRAWINGS}


def luminance(color):
    """Relative luminance of a color such as `#2f81d0`, as WCAG defines it."""
    values = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("file", DRAWINGS, ids=lambda file: file.stem)
def test_a_drawing_is_for_screen_readers_and_both_themes(file):
    root = ET.fromstring(file.read_text("utf-8"))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert title.text
    assert description.text
    for element in root.iter():
        if element.tag == f"{SVG}text":
            assert element.get("fill") == "currentColor"
        for color in {element.get("fill"), element.get("stroke")} - {None, "none", "currentColor"}:
            for background in (0.0, 1.0):
                light, dark = sorted([luminance(color), background], reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 3, color


def box(element):
    """Left, top, right and bottom of a text, in DejaVu Sans: most fonts of pages are narrower."""
    name = "DejaVu Sans Mono" if element.get("font-family") else "DejaVu Sans"
    font = FontProperties(family=name, weight=element.get("font-weight", "normal"))
    size = float(element.get("font-size"))
    width = TextPath((0, 0), element.text, size=size, prop=font).get_extents().width
    left = float(element.get("x")) - {"start": 0, "middle": 0.5}[element.get("text-anchor")] * width
    base = float(element.get("y"))
    return left, base - 0.8 * size, left + width, base + 0.2 * size


@pytest.mark.parametrize("file", DRAWINGS, ids=lambda file: file.stem)
def test_labels_are_inside_of_a_drawing_and_do_not_overlap(file):
    root = ET.fromstring(file.read_text("utf-8"))
    _, _, width, height = map(float, root.get("viewBox").split())
    labels = {(e.text, e.get("x"), e.get("y")): box(e) for e in root.iter(f"{SVG}text")}
    assert len(labels) > 5
    for label, (left, top, right, bottom) in labels.items():
        assert min(left, top, width - right, height - bottom) >= 0, label
    for (one, a), (other, b) in itertools.combinations(labels.items(), 2):
        beside = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert beside, (one, other)


def test_the_style_of_a_drawing_does_not_change_the_page():
    """A style inside of a page is one for all of its elements."""
    for file in DRAWINGS:
        style = ET.fromstring(file.read_text("utf-8")).find(f"{SVG}style").text
        rules = re.sub(r"@media [^{]*\{", "", style)
        selectors = [one.strip() for one in re.findall(r"[^{}]+(?=\{)", rules)]
        assert selectors
        assert set(selectors) == {"svg:root"}


def test_each_drawing_is_on_a_page_and_at_most_once():
    """Two of one drawing would give a page two elements with one id."""
    places = {file.name: 0 for file in DRAWINGS}
    for text in PAGES.values():
        included = re.findall(r"^:file: [./]*/drawings/(.*)$", text, flags=re.MULTILINE)
        assert len(included) == len(set(included))
        for name in included:
            places[name] += 1
    assert min(places.values()) > 0
