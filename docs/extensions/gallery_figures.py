"""Pictures of the gallery: save the figures of a script, and cut thumbnails from them."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from sphinx_gallery.scrapers import figure_rst

SHARPER = 2  # for screens with twice the pixels
THUMBNAIL = (400, 280)
# The axes of the thumbnail, if they are not the first ones with an image.
MAIN_AXES = {"eds_map": 3, "live_snapshots": 2, "radial_profile": 0}

boxes: dict[str, tuple[float, float, float, float]] = {}
"""Left, top, right and bottom of the main axes, as fractions of the picture, by script."""


def scrape(_block: Any, block_vars: Any, gallery_conf: Any) -> str:
    """Save the figures of pyplot, and those that only the script has, as of `Result.plot`.

    Returns
    -------
    str
        reStructuredText that shows the figures.
    """
    figures = [plt.figure(number) for number in plt.get_fignums()]
    held = block_vars["example_globals"].values()
    figures += [v for v in held if isinstance(v, Figure) and not any(v is f for f in figures)]
    plt.close("all")
    shown = ""
    for figure, path in zip(figures, block_vars["image_path_iterator"], strict=False):
        large = Path(path).with_name(f"{Path(path).stem}_2_00x.png")
        figure.savefig(path)
        figure.savefig(large, dpi=SHARPER * figure.dpi)
        sizes = [{0: path, SHARPER: large}]
        shown += figure_rst([path], gallery_conf["src_dir"], titles(figure), srcsetpaths=sizes)
        script = Path(block_vars["src_file"]).stem
        images = [number for number, axes in enumerate(figure.axes) if axes.images]
        number = MAIN_AXES.get(script, images[0] if images else 0)
        left, bottom, right, top = figure.axes[number].get_position().extents
        boxes[script] = (left, 1 - top, right, 1 - bottom)
    return shown


def titles(figure: Figure) -> str:
    """Return the titles of a figure, which describe it to those who do not see it."""
    found = [axes.get_title("left") or axes.get_title() for axes in figure.axes]
    return ", ".join(title for title in [figure.get_suptitle(), *found] if title)


def _get_sg_image_scraper() -> Any:
    """Return the scraper; sphinx-gallery asks for it by this name."""
    return scrape


def cut_thumbnails(examples: Path) -> None:
    """Replace each thumbnail by the main axes of its picture, without labels."""
    for thumbnail in examples.rglob("images/thumb/sphx_glr_*_thumb.png"):
        name = thumbnail.name.removesuffix("_thumb.png")
        box = boxes.get(name.removeprefix("sphx_glr_"))
        if box is not None:  # otherwise the thumbnail is that of an earlier build
            with Image.open(thumbnail.parents[1] / f"{name}_001_2_00x.png") as picture:
                main = picture.crop(middle(box, picture.size))
                main.resize(THUMBNAIL, Image.Resampling.LANCZOS).save(thumbnail)


def middle(
    box: tuple[float, float, float, float], size: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Return the middle of a part of a picture, in pixels, in the proportions of a thumbnail."""
    left, right = box[0] * size[0], box[2] * size[0]
    top, bottom = box[1] * size[1], box[3] * size[1]
    proportion = THUMBNAIL[0] / THUMBNAIL[1]
    width = min(right - left, (bottom - top) * proportion)
    x, y = (left + right) / 2, (top + bottom) / 2
    return x - width / 2, y - width / proportion / 2, x + width / 2, y + width / proportion / 2
