"""The links of the gallery's scripts hold; the build of the documentation runs them."""

import pydoc
import re
from pathlib import Path

import pytest

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("**/*.py"))


def name(path):
    return path.relative_to(GALLERY).with_suffix("").as_posix()


@pytest.fixture(params=SCRIPTS, ids=name)
def script(request):
    return request.param


def test_linked_pages_exist(script):
    pages = re.findall(r":doc:`[^<`]+<(/[^>]+)>`", script.read_text())
    missing = [page for page in pages if not (GALLERY.parent / f"{page[1:]}.md").exists()]
    assert pages
    assert not missing


def test_linked_names_exist(script):
    targets = re.findall(r":(?:class|func|meth):`(?:[^`<]*<)?~?([\w.]+)>?`", script.read_text())
    assert targets
    assert all(pydoc.locate(target) is not None for target in targets), targets


def test_each_section_has_a_place_in_the_order():
    order = re.findall(r'"gallery/(\w+)",', (GALLERY.parent / "conf.py").read_text())
    assert sorted(order) == sorted({path.parent.name for path in SCRIPTS})
