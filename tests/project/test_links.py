"""Links between the files of a clone hold; `.ci/links.py` looks at those of the built pages."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".github", "asv_bench", "docs", "notebooks", "scripts")
MADE = re.compile(r"docs/(tutorials/.*ipynb|(examples|generated|reference/generated|_build)\b)")
"""Files that exist once the documentation was built, and not in a clone."""
FILES = sorted(
    file
    for file in [*ROOT.glob("*.md"), *(f for d in FOLDERS for f in (ROOT / d).rglob("*.md"))]
    if not MADE.match(str(file.relative_to(ROOT)))
)


def text_of(page):
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def anchors(page):
    """The anchors that GitHub and Sphinx give to the headings of a page."""
    titles = re.findall(r"^#+ +(.*?)\s*$", text_of(page), flags=re.MULTILINE)
    plain = [re.sub(r"\[(.*?)\]\(.*?\)|[`*]", r"\1", title) for title in titles]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in plain}


def test_links_between_files_of_the_clone_hold():
    found = {page: anchors(page) for page in FILES}
    dead = []
    for page in FILES:
        for link, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", text_of(page)):
            target = Path(os.path.normpath(page.parent / link)) if link else page
            is_there = target.exists() and not MADE.match(str(target.relative_to(ROOT)))
            if not is_there or (anchor and anchor not in found[target]):
                dead.append(f"{page.relative_to(ROOT)}: {link}#{anchor}")
    assert not dead
