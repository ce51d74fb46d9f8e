"""Draw the results of a UDF, and the pixels that UDFs use as detectors over a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labels import find_place
from udfdask.geometry.shapes import Shape
from udfdask.plan.arguments import Settings
from udfdask.plan.declarations import declare
from udfdask.plan.parameters import new_instance
from udfdask.plan.pixels import Frame, with_pixels
from udfdask.plan.recipe import Data
from udfdask.plotting.choose import choose
from udfdask.plotting.colors import check_colors
from udfdask.plotting.displays import figure_class, new_figure
from udfdask.plotting.static import draw, figure_size
from udfdask.results.named_results import ResultInfo
from udfdask.scheduling.compute import compute
from udfdask.udf import UDF
from udfdask.udf.libertem_udfs import as_own

if TYPE_CHECKING:
    from udfdask.plotting.displays import Figure


def draw_result(
    result: Any,
    names: Any,
    *,
    log: bool | None = None,
    title: str = "",
    outlines: Mapping[str, Any] | None = None,
    **look: Any,
) -> Figure:
    """Check the arguments of `Result.plot`, compute what is drawn in one pass, and draw it.

    `outlines` are masks of frames that are drawn over each image, by name.
    """
    figure_class()  # raises if there is no matplotlib
    choices = choose(names, [result._info], option="names")
    look = {"log": log, **check_colors(**look)}
    wanted = dict.fromkeys(one.name for one in choices)
    arrays, masks = compute(
        {name: result[name] for name in wanted}, {name: result.valid_mask[name] for name in wanted}
    )
    panels = [
        replace(panel, outlines=outlines or {})
        for one in choices
        for panel in one.panels(arrays[one.name], masks[one.name], **look)
    ]
    return draw(panels, title=title, figure=new_figure(figure_size(panels, title=title)))


def draw_detectors(result: Any, detectors: Any, name: str | None, **how: Any) -> Figure:
    """Draw detectors over a result of kind sig; `how` are arguments of `draw_result`."""
    patterns = [n for n, spec in result.buffers.items() if spec.kind == "sig"]
    chosen = name if name is not None else next(iter(patterns), "")
    place = find_place(chosen, result.extra_axes)
    if not patterns or (place is not None and place.result not in patterns):
        raise ArgumentValueError(
            f"detectors are drawn over a result of kind sig: {result.udf_name} has {patterns}; "
            "a SumUDF has one"
        )
    return draw_result(result, chosen, outlines=detector_masks(result._info, detectors), **how)


def detector_masks(info: ResultInfo, detectors: Any) -> dict[str, AnyArray]:
    """Return the masks of UDFs and of plain masks, bool of shape sig, by names for a legend.

    `info` describes the run over the same data. A second disk is called "disk 2".
    """
    sig = info.sig_shape
    if len(sig) not in (1, 2):
        raise ArgumentValueError(
            f"detectors are drawn over frames of one or two axes, but frames have the shape {sig}"
        )
    if not isinstance(detectors, (Mapping, list, tuple)):
        detectors = [detectors]
    named = detectors.items() if isinstance(detectors, Mapping) else zip(repeat(None), detectors)
    masks: dict[str, AnyArray] = {}
    for name, detector in named:
        found = _masks_of(info, detector)
        for own, mask in found.items():
            called = own
            if name is not None:
                called = name if len(found) == 1 else f"{name} {own}"
            free, number = called, 1
            while free in masks:
                number += 1
                free = f"{called} {number}"
            if mask.shape != tuple(sig):
                raise ArgumentValueError(
                    f"the detector {called!r} has the shape {mask.shape}, but frames have the "
                    f"shape {tuple(sig)}"
                )
            if not mask.any():
                raise ArgumentValueError(f"the detector {called!r} has no pixel")
            masks[free] = mask
    if not masks:
        raise ArgumentValueError("there is no detector to draw: pass a UDF, a mask, or several")
    return masks


def _masks_of(info: ResultInfo, detector: Any) -> Mapping[str, AnyArray]:
    detector = as_own(detector)
    if not isinstance(detector, UDF):
        mask = np.asarray(detector)
        if mask.dtype.kind not in "biuf":
            raise ArgumentTypeError(
                f"a detector is a UDF such as VirtualDetectorUDF or a mask, not {detector!r}"
            )
        return {"mask": mask != 0}
    shape = Shape((*info.nav_shape, *info.sig_shape), sig_dims=len(info.sig_shape))
    udf = with_pixels(detector, Frame.of(info.calibration, shape))
    data = Data(
        shape=shape,
        dtype=np.dtype(np.float64),
        grid=info.grid,
        sig_chunks=tuple((n,) for n in shape.sig),
    )
    asked = new_instance(type(udf), udf._kwargs)
    asked.meta = data.meta(info.calibration, 1).with_input_dtype(data.dtype)
    declare(udf, data, info.calibration, Settings(split_every=False))  # the checks of a run
    masks = asked.get_detector_masks()
    if not masks:
        raise ArgumentValueError(
            f"{type(udf).__name__} uses all pixels of a frame: there is no detector to draw"
        )
    return {name: np.asarray(mask).astype(bool) for name, mask in masks.items()}
