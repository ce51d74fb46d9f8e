"""The parameters of a UDF and its task data: values by name."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping
from typing import Any

from udfdask.errors import UDFError


class Params:
    """Parameters of a UDF, as `self.params`: read by attribute or by item, never assigned.

    A parameter may be called anything: its name hides a method of this class.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise UDFError(
            f"parameters cannot be assigned (params.{name} = ...): pass them to super().__init__, "
            "and keep what a task computes in task_data"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            for own in self.__dict__:
                # inside a class, Python makes _Class__own of params.__own
                if own.startswith("__") and name.endswith(own):
                    return self.__dict__[own]
        raise AttributeError(f"there is no parameter {name!r}; there are {sorted(self.__dict__)}")

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __repr__(self) -> str:
        return f"Params({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter, or `default` if there is none of that name."""
        return self.__dict__.get(name, default)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self.__dict__.keys()

    def items(self) -> ItemsView[str, Any]:
        """Return pairs of name and value."""
        return self.__dict__.items()


class TaskData:
    """What `get_task_data` returned, as `self.task_data`: by attribute or by item."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"there is no task data {name!r}; get_task_data returned {sorted(self.__dict__)}"
        )

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def get(self, name: str, default: Any = None) -> Any:
        """Return an item, or `default` if there is none of that name."""
        return self.__dict__.get(name, default)
