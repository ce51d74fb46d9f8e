"""Check that the links of the built documentation lead somewhere: ``python .ci/links.py FOLDER``.

Links to pages, anchors, pictures, scripts and styles must resolve inside of the folder, and so must
redirects. Of external links only the form is checked, because the gate has no network; the workflow
``docs`` also asks the servers, with Sphinx's builder ``linkcheck``.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

TWICE = {"sg-tag-list"}  # sphinx-gallery gives it to each of its sections
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "use": "href"}


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the tag names and where it leads."""
        found = dict(attrs)
        if "id" in found:
            self.anchors.append(found["id"] or "")
        if tag == "a" and "name" in found:
            self.anchors.append(found["name"] or "")
        if LINKS.get(tag) in found:
            self.links.append(found[LINKS[tag]] or "")
        if tag == "meta" and (found.get("http-equiv") or "").lower() == "refresh":
            self.links.append((found.get("content") or "").partition("url=")[2])


def external_is_wrong(link: str) -> bool:
    """Return whether a link to another site is malformed."""
    parts = urlsplit(link)
    if parts.scheme == "mailto":
        return not re.fullmatch(r"[^@\s]+@[^@\s]+\.\w+", parts.path)
    if parts.scheme == "data":
        return False
    host = re.fullmatch(r"([\w-]+\.)+[a-z]{2,}(:\d+)?", parts.netloc)
    return parts.scheme not in {"http", "https"} or not host or bool(re.search(r"\s", link))


def problems(folder: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and for each anchor that is there twice."""
    folder = folder.resolve()
    # the theme keeps templates with its styles
    files = [file for file in sorted(folder.rglob("*.html")) if "_static" not in file.parts]
    pages = {file: Page(file.read_text("utf-8")) for file in files}
    anchors = {file: {*page.anchors} for file, page in pages.items()}
    found = []
    for file, page in pages.items():
        name = file.relative_to(folder)
        twice = sorted({one for one in page.anchors if page.anchors.count(one) > 1} - TWICE)
        found += [f"{name}: two elements have the id {one!r}" for one in twice]
        for link in sorted({*page.links}):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if external_is_wrong(link):
                    found.append(f"{name}: {link} is no address of a web page")
                continue
            target = file if not parts.path else (file.parent / unquote(parts.path)).resolve()
            if not target.is_relative_to(folder) or not target.is_file():
                found.append(f"{name}: {link!r} leads to no file")
            elif name.parts[0] == "_modules":
                continue  # viewcode takes one module for all objects of a file: the page is right
            elif parts.fragment and unquote(parts.fragment) not in anchors.get(target, ()):
                found.append(f"{name}: {link} leads to no anchor of the page")
    return found


def main(folder: Path) -> int:
    """Print the problems; return 1 if there are any, or no pages."""
    if not (folder / "index.html").exists():
        print(f"{folder} has no index.html: build the documentation first")
        return 1
    found = problems(folder)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
