"""Say what to do about errors that NumPy raises in methods of users."""

from __future__ import annotations

from udfdask.udf.buffers import Results


def hint_for(error: Exception, results: Results) -> str:
    """Return what to do about an exception of a user's method, empty if it is none of NumPy's.

    `results` has the buffers as the method saw them.
    """
    if type(error) not in (ValueError, OverflowError):
        return ""  # the text of a user's own exception may fail
    text = str(error)
    if isinstance(error, ValueError) and (
        "broadcast" in text or "setting an array element" in text
    ):
        return (
            f"{_shapes(results)}. If a buffer needs more values, declare it with extra_shape: "
            "(2,) for two, self.meta.dataset_shape.sig for a frame"
        )
    if isinstance(error, ValueError) and "read-only" in text:
        return (
            "data and what all chunks share are read-only: make a new array, such as "
            "frame = frame - frame.mean(), or change a copy, such as frame.copy()"
        )
    if "cannot convert float" in text:
        return (
            "a buffer of integers holds no infinity and no NaN: declare it with a floating dtype, "
            "or start with the limits of the dtype, such as np.iinfo('int32').min"
        )
    return ""


def _shapes(results: Results) -> str:
    """Return the shapes of the buffers in words."""
    shapes = {name: view.shape for name, view in vars(results).items() if hasattr(view, "shape")}
    if not shapes:
        return "no buffer can be assigned here"
    return "here the buffers have the shapes " + ", ".join(
        f"{name} {shape}" for name, shape in shapes.items()
    )
