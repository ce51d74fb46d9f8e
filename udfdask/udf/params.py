"""Hold the parameters and the task data of a UDF: values by name."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping
from typing import Any

from udfdask.errors import UDFError


class _Values:
    """Values by name, by attribute or by item.

    The names are in the `__dict__` of the instance, where they hide methods of this class.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or `default` if there is none of that name.

        Parameters
        ----------
        name : str
            The name.
        default : object
            Returned if there is no value of this name.

        Returns
        -------
        object
            The value, or `default`.
        """
        return self.__dict__.get(name, default)


class Params(_Values):
    """Hold the parameters of a UDF, as `self.params`, by attribute or by item; read-only.

    Examples
    --------
    >>> import udfdask as ud
    >>> udf = ud.UDF(radius=3, center=(8, 8))
    >>> udf.params.radius, udf.params["center"], udf.params.get("order", 1), list(udf.params)
    (3, (8, 8), 1, ['radius', 'center'])
    """

    def __setattr__(self, name: str, value: Any) -> None:
        raise UDFError(
            f"parameters cannot be assigned (params.{name} = ...): pass them to super().__init__, "
            "and return values that a task computes from get_task_data"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            for own in self.__dict__:
                # inside a class, Python replaces params.__own by params._Class__own
                if own.startswith("__") and name.endswith(own):
                    return self.__dict__[own]
        raise AttributeError(f"there is no parameter {name!r}; there are {sorted(self.__dict__)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __repr__(self) -> str:
        return f"Params({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def keys(self) -> KeysView[str]:
        """Return the names of the parameters.

        Returns
        -------
        KeysView
            The names, as of a dictionary.
        """
        return self.__dict__.keys()

    def items(self) -> ItemsView[str, Any]:
        """Return the pairs of name and value.

        Returns
        -------
        ItemsView
            The pairs, as of a dictionary.
        """
        return self.__dict__.items()


class TaskData(_Values):
    """Hold the task data of a UDF, as `self.task_data`, by attribute or by item.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> class ScaledUDF(ud.UDF):
    ...     def get_result_buffers(self):
    ...         return {"total": self.buffer(kind="nav")}
    ...     def get_task_data(self):
    ...         return {"factor": 2}
    ...     def process_frame(self, frame):
    ...         self.results.total[:] = self.task_data.factor * frame.sum()
    >>> ud.run_udf(da.ones((2, 4, 4)), ScaledUDF())["total"].compute()
    array([32., 32.], dtype=float32)
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"there is no task data {name!r}; get_task_data returned {sorted(self.__dict__)}"
        )
