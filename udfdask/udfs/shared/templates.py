"""UDFs that compare frames with a template, the image of a disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labels import is_data_array, plain_array, vectors_of
from udfdask.masks import DiskTemplate
from udfdask.udf import UDF
from udfdask.udfs.shared.built_in import BuiltInUDF


class TemplateUDF(BuiltInUDF):
    """A UDF with the parameter `template`: a `DiskTemplate`, an array, also lazy, or a file."""

    def __init__(self, *, template: Any, **more: Any) -> None:
        if is_data_array(template):
            raise ArgumentTypeError(
                "template is a DataArray, which has no center: pass its .values"
            )
        if hasattr(template, "array") and hasattr(template, "sig_dims"):  # an opened file
            template = template.array
        if not isinstance(template, DiskTemplate):
            template = read_array("template", template, (None, None), _NOT_AN_IMAGE)
        super().__init__(template=template, **more)
        template = self.params.template
        if isinstance(template, DiskTemplate):  # with a unit, the plan makes another instance
            template = None if template.has_units else template.array()
        self._template = template

    get_preferred_input_dtype = UDF.get_preferred_input_dtype  # float32

    def _frame_shape(self, kinds: str = "f") -> tuple[int, int]:
        """Return the height and width of frames; raise if they are smaller than the template."""
        sig, shape = super()._frame_shape(kinds), self._template.shape
        if any(n > size for n, size in zip(shape, sig, strict=True)):
            raise ArgumentValueError(
                f"the template of shape {shape} is larger than a frame of shape {sig}"
            )
        return sig


_NOT_AN_IMAGE = (
    "template must be a DiskTemplate or an array (height, width), not {given!r:.60}: for a disk "
    "write DiskTemplate(radius=...)"
)


def read_array(name: str, given: Any, shape: tuple[int | None, ...], message: str) -> Any:
    """Return a lazy array unchanged, or finite real numbers as a NumPy array.

    In the shape that it needs, None is any size but 0; the message for others may have the fields
    `shape` and `given`.
    """
    array = given = plain_array(vectors_of(given, name))
    if not is_lazy(given):
        try:
            array = np.asarray(given)
        except ValueError as e:  # ragged
            raise ArgumentValueError(f"{name} must be an array of numbers: {e}") from None
        if array.dtype.kind not in "biuf" and array.size:
            kind = type(given).__name__
            raise ArgumentTypeError(f"{name} must hold real numbers, not {kind} of {array.dtype}")
        if not np.isfinite(array).all():
            raise ArgumentValueError(f"{name} must hold finite numbers, not NaN or infinite ones")
    fits = len(array.shape) == len(shape)
    if not fits or any(n != m if m else n == 0 for n, m in zip(array.shape, shape, strict=True)):
        raise ArgumentValueError(message.format(shape=array.shape, given=given))
    return array
