"""Analyses from frames to physics: phases, strain, and what they are made of."""

from typing import TYPE_CHECKING

from udfdask.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from udfdask.analyses.disks import FindDisksUDF as FindDisksUDF
    from udfdask.analyses.disks import find_disks as find_disks
    from udfdask.analyses.integration import integrate_gradient as integrate_gradient

    __all__: list[str]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "disks": "FindDisksUDF find_disks",
            "integration": "integrate_gradient",
        },
    )
    __all__ = list(__dir__())
