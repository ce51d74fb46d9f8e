"""The check of the built pages finds broken links; links between files of the clone hold.

Names of attributes keep their underscores in anchors, as GitHub and Sphinx have them.
"""

import importlib.util
import os
import re
from pathlib import Path

import pytest

from prose import read_blocks

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".github", "asv_bench", "docs", "notebooks", "scripts")
MADE = re.compile(r"docs/(tutorials/.*ipynb|(examples|generated|reference/generated|_build)\b)")
"""Files that exist once the documentation was built, and not in a clone."""
FILES = sorted(
    file
    for file in [*ROOT.glob("*.md"), *(f for d in FOLDERS for f in (ROOT / d).rglob("*.md"))]
    if not MADE.match(str(file.relative_to(ROOT)))
)


spec = importlib.util.spec_from_file_location("links", ROOT / ".ci" / "links.py")
links = importlib.util.module_from_spec(spec)
spec.loader.exec_module(links)


@pytest.fixture
def check(capsys):
    """Run the script; returns the status and the lines that it prints."""

    def run(folder):
        status = links.main(folder)
        return status, capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def site(tmp_path):
    """A small site without faults."""
    (tmp_path / "guide").mkdir()
    (tmp_path / "picture.png").write_bytes(b"")
    (tmp_path / "guide" / "masks.html").write_text(
        '<h1 id="masks">Masks</h1><a href="../index.html#top">up</a><a href="#masks">here</a>'
        '<img src="../picture.png?v=1"><a href="https://docs.dask.org/en/stable/">dask</a>'
    )
    (tmp_path / "old.html").write_text(
        '<noscript><meta http-equiv="refresh" content="0; url=guide/masks.html" /></noscript>'
    )
    (tmp_path / "index.html").write_text('<p id="top"><a href="guide/masks.html#masks">M</a>')
    return tmp_path


def test_a_site_without_faults_passes(site, check):
    assert check(site) == (0, [])


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ('<a href="guide/mask.html">', "index.html: 'guide/mask.html' leads to no file"),
        ('<a href="guide/">', "index.html: 'guide/' leads to no file"),
        ('<a href="">', None),
        ('<img src="drawing.svg">', "index.html: 'drawing.svg' leads to no file"),
        ('<script src="a.js"></script>', "index.html: 'a.js' leads to no file"),
        ('<a href="../outside.html">', "index.html: '../outside.html' leads to no file"),
        ('<a href="#bottom">', "index.html: #bottom leads to no anchor of the page"),
        (
            '<a href="guide/masks.html#rings">',
            "index.html: guide/masks.html#rings leads to no anchor of the page",
        ),
        (
            '<meta http-equiv="refresh" content="0; url=new.html">',
            "index.html: 'new.html' leads to no file",
        ),
        ('<b id="a"></b><b id="a"></b>', "index.html: two elements have the id 'a'"),
        ('<a href="http:/dask.org">', "index.html: http:/dask.org is no address of a web page"),
        ('<a href="https://dask">', "index.html: https://dask is no address of a web page"),
        ('<a href="ftp://dask.org">', "index.html: ftp://dask.org is no address of a web page"),
        ('<a href="mailto:us@dask.org">', None),
    ],
)
def test_a_fault_is_found(site, check, html, message):
    (site / "index.html").write_text(f'<p id="top">{html}')
    assert check(site) == ((1, [message]) if message else (0, []))


def test_a_folder_without_pages_fails(tmp_path, check):
    assert check(tmp_path)[0] == 1


def anchors(page):
    """The anchors that GitHub and Sphinx give to the headings of a page."""
    titles = [block.text for block in read_blocks(page.read_text("utf-8"))]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_between_files_of_the_clone_hold():
    found = {page: anchors(page) for page in FILES}
    dead = []
    for page in FILES:
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        for link, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", text):
            target = Path(os.path.normpath(page.parent / link)) if link else page
            is_there = target.exists() and not MADE.match(str(target.relative_to(ROOT)))
            if not is_there or (anchor and anchor not in found[target]):
                dead.append(f"{page.relative_to(ROOT)}: {link}#{anchor}")
    assert not dead
