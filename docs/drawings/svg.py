"""SVG text of boxes, arrows, cells and labels, for pages with a light or a dark theme."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

# Readable on white and on black: each has a contrast of at least 3 to both.
BLUE, ORANGE, GREEN = "#2f81d0", "#d9730d", "#2e9e5b"

TEXT = 13  # font size of labels, in units of the drawing
LINE = 17  # from one line of text to the next

# Average width of a letter of a sans-serif font, in font sizes: rounded up, since fonts differ.
LETTER, BOLD_LETTER = 0.56, 0.6


@dataclass
class Drawing:
    """A drawing whose elements are added one by one.

    Text and lines have the color of the text around the drawing (``currentColor``) and its font, if
    the SVG is a part of the page. Opened as a file or shown by ``<img>``, it has no text around:
    the rules for ``svg:root`` follow the light or dark theme of the system. They do not match in
    a page, where ``html`` is the root.

    Parameters
    ----------
    name
        Name of the file, without its suffix.
    title, description
        What screen readers read: a name, and what the drawing shows.
    width, height
        Size in pixels, where the page is wide enough.
    """

    name: str
    title: str
    description: str
    width: int
    height: int
    elements: list[str] = field(default_factory=list)

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        color: str = "currentColor",
        *,
        fill: float = 0.0,
        line: float = 1.5,
        dashed: bool = False,
        round_: float = 4,
    ) -> None:
        """Add a rectangle, filled with its color at the opacity `fill`."""
        self._check(x, y, x + width, y + height)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.elements.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" '
            f'fill="{color}" fill-opacity="{fill:g}" stroke="{color}" stroke-width="{line:g}"'
            f"{dashes}/>"
        )

    def text(
        self,
        x: float,
        y: float,
        *lines: str,
        anchor: str = "start",
        bold: bool = False,
        code: bool = False,
        size: int = TEXT,
    ) -> None:
        """Add lines of text. `y` is the baseline of the first of them."""
        letter = BOLD_LETTER if bold or code else LETTER
        for number, words in enumerate(lines):
            length = letter * size * len(words)
            left = x - {"start": 0, "middle": 0.5, "end": 1}[anchor] * length
            base = y + number * LINE
            self._check(left, base - size, left + length, base + 0.3 * size)
            weight = ' font-weight="bold"' if bold else ""
            family = ' font-family="ui-monospace, monospace"' if code else ""
            self.elements.append(
                f'<text x="{x:g}" y="{base:g}" text-anchor="{anchor}" font-size="{size}"{weight}'
                f'{family} fill="currentColor">{escape(words)}</text>'
            )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        heading: str,
        *lines: str,
        color: str = "currentColor",
        code: bool = False,
    ) -> None:
        """Add a box with a heading and lines of text, all in its middle."""
        self.rectangle(x, y, width, height, color, fill=0.06 if color == "currentColor" else 0.18)
        letters = [(heading, BOLD_LETTER), *((words, LETTER) for words in lines)]
        for words, letter in letters:
            if letter * TEXT * len(words) > width - 4:
                raise ValueError(f"{self.name}: {words!r} is wider than its box")
        first = y + (height - LINE * (1 + len(lines))) / 2 + TEXT
        middle = x + width / 2
        self.text(middle, first, heading, anchor="middle", bold=True, code=code)
        self.text(middle, first + LINE, *lines, anchor="middle")

    def line(self, *points: tuple[float, float], line: float = 1.5) -> None:
        """Add a line along points."""
        for x, y in points:
            self._check(x, y, x, y)
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.elements.append(
            f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="{line:g}"/>'
        )

    def arrow(
        self, *points: tuple[float, float], color: str = "currentColor", line: float = 1.5
    ) -> None:
        """Add an arrow along points, with its head at the last of them."""
        (x0, y0), (x1, y1) = points[-2:]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        back_x, back_y = x1 - 8 * dx, y1 - 8 * dy
        path = " ".join(f"{x:g},{y:g}" for x, y in [*points[:-1], (back_x, back_y)])
        head = " ".join(
            f"{x:g},{y:g}"
            for x, y in [
                (x1, y1),
                (round(back_x - 4 * dy, 2), round(back_y + 4 * dx, 2)),
                (round(back_x + 4 * dy, 2), round(back_y - 4 * dx, 2)),
            ]
        )
        for x, y in points:
            self._check(x, y, x, y)
        self.elements.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{line:g}"/>'
        )
        self.elements.append(f'<polygon points="{head}" fill="{color}"/>')

    def cells(
        self,
        x: float,
        y: float,
        rows: int,
        columns: int,
        size: float,
        color: str = "currentColor",
        *,
        fill: float = 0.0,
    ) -> None:
        """Add a grid of square cells with thin lines."""
        for row in range(rows):
            for column in range(columns):
                left, top = x + column * size, y + row * size
                self.rectangle(left, top, size, size, color, fill=fill, line=0.6, round_=0)

    def stack(
        self,
        x: float,
        y: float,
        n: int,
        width: float,
        height: float,
        color: str,
        *,
        step: float = 6,
        fill: float = 0.22,
    ) -> None:
        """Add `n` frames one behind the other. The first is in front, at the lower left."""
        for number in reversed(range(n)):
            left, top = x + number * step, y + (n - 1 - number) * step
            self._check(left, top, left + width, top + height)
            if number == 0:
                self.rectangle(left, top, width, height, color, fill=fill, line=1, round_=0)
                continue
            # Of the frames behind, only the strip that is seen: a frame that hides others would
            # need a fill in the color of the page.
            corners = [
                (left, top),
                (left + width, top),
                (left + width, top + height),
                (left + width - step, top + height),
                (left + width - step, top + step),
                (left, top + step),
            ]
            points = " ".join(f"{x:g},{y:g}" for x, y in corners)
            self.elements.append(
                f'<polygon points="{points}" fill="{color}" fill-opacity="{fill / 2:g}" '
                f'stroke="{color}" stroke-width="1"/>'
            )

    def svg(self) -> str:
        """Return the text of the file."""
        title, description = f"drawing-{self.name}-title", f"drawing-{self.name}-description"
        start = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" '
            f'aria-labelledby="{title} {description}">'
        )
        return "\n".join(
            [
                start,
                f'<title id="{title}">{escape(self.title)}</title>',
                f'<desc id="{description}">{escape(self.description)}</desc>',
                "<style>",
                "svg:root { color: #1a1a1a; color-scheme: light dark; font-family: sans-serif; }",
                "@media (prefers-color-scheme: dark) { svg:root { color: #e8e8e8; } }",
                "</style>",
                *self.elements,
                "</svg>",
                "",
            ]
        )

    def _check(self, left: float, top: float, right: float, bottom: float) -> None:
        if left < 0 or top < 0 or right > self.width or bottom > self.height:
            raise ValueError(f"{self.name}: {(left, top, right, bottom)} is outside of the drawing")
