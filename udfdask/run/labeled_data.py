"""Run UDFs over data with labels: what the accessors of DataArrays and signals share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da

from udfdask.advice import Door
from udfdask.base.tracebacks import own_lines_hidden
from udfdask.explanation.describe import Explanation
from udfdask.geometry.axes import Calibration
from udfdask.geometry.labels import DataLabels
from udfdask.results.result import Result
from udfdask.run.progressive import ProgressiveRun
from udfdask.run.read_masks import read_labeled, read_values
from udfdask.run.run_udf import explain_for, run_for


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledData:
    """The data of an accessor."""

    door: Door
    """The entry point of its users."""
    array: da.Array
    """The data, shape (*nav, *sig)."""
    roi: Any
    """The region of interest in the order of `array`, as `udfdask.run_udf` takes it."""
    labels: DataLabels
    """Names of the axes and labels along them, with which parameters are aligned."""
    calibration: Calibration
    """Axes of the data, unit of their values, and voltage."""
    read_mask: Callable[[Any], Any]
    """Returns the array of a mask with labels, and every other value unchanged."""

    def _arguments(self, udf: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the UDFs and all options of a run, aligned with the data."""
        udf, chosen = read_labeled(udf, options, self.labels, self.read_mask)
        known = self.calibration
        own = {"axes": known.axes, "unit": known.unit, "voltage": known.voltage, "roi": self.roi}
        return udf, {"sig_dims": len(self.labels.sig), **own, **chosen}

    def run(self, udf: Any, options: Mapping[str, Any]) -> tuple[Result, ...]:
        """Return the lazy results of each UDF."""
        with own_lines_hidden:
            udf, chosen = self._arguments(udf, options)
            made = run_for(self.door, self.array, udf, **chosen)
        made = tuple(made.values()) if isinstance(udf, dict) else made
        return made if isinstance(made, tuple) else (made,)

    def explain(self, udf: Any, options: Mapping[str, Any], *, measure: bool) -> Explanation:
        """Return the description of a run."""
        udf, chosen = self._arguments(udf, options)
        return explain_for(self.door, self.array, udf, measure=measure, **chosen)

    def iterate(self, udf: Any, options: Mapping[str, Any]) -> ProgressiveRun:
        """Return a planned run that yields snapshots."""
        udf, chosen = self._arguments(udf, options)
        align = partial(read_values, read=self.read_mask, data=self.labels)
        return ProgressiveRun(self.array, udf, door=self.door, align=align, **chosen)
