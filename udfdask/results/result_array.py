"""The array of a computed result, with the attributes that results have in LiberTEM.

NumPy's `data` of an array is a memoryview. A script that was written for LiberTEM reads it too, and
would go on with the memoryview until something fails far away. So a computed result is a view with
attributes of its own, and everything that is made of it is a plain array: its parts, its copies,
results of its methods and of NumPy's functions, what it becomes in a pickle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray, Kind
from udfdask.geometry.chunk_grid import BoolArray, Grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A computed result: its values, and what its other forms are made of."""

    values: AnyArray
    """The values in the shape of the dataset, a plain array."""
    mask: BoolArray | None
    """Its valid mask in the same shape; None if that follows from the region of interest."""
    kind: Kind
    """Kind of the result."""
    extra_shape: tuple[int, ...]
    """Shape of each value."""
    grid: Grid
    """Navigation chunks and ROI."""

    @property
    def valid(self) -> BoolArray:
        """The valid mask, in the shape of the values."""
        if self.mask is not None:
            return self.mask
        mask = np.ones(self.values.shape, dtype=bool)
        if self.kind == "nav" and self.grid.roi is not None:
            mask[~self.grid.roi] = False
        return mask

    def rows(self, values: AnyArray) -> AnyArray:
        """Return values of this result with flattened navigation, only the frames of the ROI."""
        if self.kind != "nav":
            return self.with_an_axis(values)
        rows = values.copy() if self.grid.roi is None else values[self.grid.roi]
        return rows.reshape((self.grid.n_frames, *self.extra_shape))

    def with_an_axis(self, values: AnyArray) -> AnyArray:
        """Return values of this result; a single number becomes an array of shape (1,)."""
        is_number = self.kind == "single" and not self.extra_shape
        return values.reshape((1,)) if is_number else values


class ResultArray(np.ndarray[Any, Any]):
    """A computed result: a NumPy array, with the attributes of LiberTEM's results.

    `Result` makes it. All that NumPy or another library computes from it is a plain array. A single
    number has the shape ``()``, and in all of these attributes the shape ``(1,)``, as in LiberTEM.
    """

    # without a __dict__: two runs that take it as a parameter have the same name
    __slots__ = ("_content",)

    _content: Content
    _baseclass = np.ndarray  # type of the data of masked arrays that are made of it

    @property
    def data(self) -> AnyArray:  # type: ignore[override]
        """The values as a plain array, in the shape of the dataset."""
        content: Content | None = getattr(self, "_content", None)
        if content is None:  # NumPy has made this array, as np.array(..., subok=True) does
            return super().data  # type: ignore[return-value]
        return content.with_an_axis(content.values)

    @property
    def raw_data(self) -> AnyArray:
        """The values with flattened navigation, only the frames of the region of interest."""
        return self._described.rows(self._described.values)

    @property
    def valid_mask(self) -> BoolArray:
        """Mask of the valid values, in the shape of `data`."""
        return self._described.with_an_axis(self._described.valid)

    @property
    def masked_data(self) -> np.ma.MaskedArray[Any, Any]:
        """The `data` as a masked array, with invalid values masked."""
        return np.ma.MaskedArray(self.data, mask=~self.valid_mask)

    @property
    def raw_masked_data(self) -> np.ma.MaskedArray[Any, Any]:
        """The `raw_data` as a masked array, with invalid values masked."""
        content = self._described
        return np.ma.MaskedArray(self.raw_data, mask=~content.rows(content.valid))

    @property
    def kind(self) -> Kind:
        """Kind of the result: nav, sig or single."""
        return self._described.kind

    @property
    def extra_shape(self) -> tuple[int, ...]:
        """Shape of each value."""
        return self._described.extra_shape

    @property
    def _described(self) -> Content:
        if not hasattr(self, "_content"):
            raise AttributeError("this array was made of a result, and is none itself")
        return self._content

    # Everything that is made of the array is plain.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        if "where" in kwargs:
            kwargs["where"] = _plain(kwargs["where"])
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _plain(super().__array_function__(func, types, args, kwargs))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain


def as_result_array(content: Content) -> ResultArray:
    """Return the array of a computed result."""
    array = content.values.view(ResultArray)
    array._content = content
    return array


def _plain(value: Any) -> Any:
    """Return arrays of results, also in a list or tuple, as plain arrays."""
    if isinstance(value, ResultArray):
        return np.asarray(value)
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return value


def _plain_method(name: str) -> Any:
    """Return a method of NumPy's arrays that is called with a plain array."""
    original = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(np.asarray(self), *map(_plain, args), **kwargs)

    method.__name__ = name
    return method


def _plain_attribute(name: str) -> Any:
    """Return an attribute of NumPy's arrays that is read from, and assigned to, a plain array."""
    original = getattr(np.ndarray, name)
    return property(
        lambda self: original.__get__(np.asarray(self)),
        lambda self, value: original.__set__(np.asarray(self), value),
    )


_IN_PLACE = {"resize", "setflags"}
"""Methods that change the array itself."""
_SPECIAL = "getitem iter repr str copy deepcopy reduce reduce_ex".split()

for _name in (*dir(np.ndarray), *(f"__{special}__" for special in _SPECIAL)):
    _is_public = not _name.startswith("_") and _name not in _IN_PLACE
    if callable(getattr(np.ndarray, _name)) and (_is_public or _name.strip("_") in _SPECIAL):
        setattr(ResultArray, _name, _plain_method(_name))
for _name in ("T", "mT", "real", "imag", "flat"):
    setattr(ResultArray, _name, _plain_attribute(_name))
