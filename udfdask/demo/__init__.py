"""Recordings to try things with, computed chunk by chunk."""

from typing import TYPE_CHECKING

from udfdask.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from udfdask.demo.crystal import disk_center as disk_center
    from udfdask.demo.crystal import make_recording as make_recording
    from udfdask.demo.phase_object import PhaseObject as PhaseObject

    __all__: list[str]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(
        __name__, {"crystal": "disk_center make_recording", "phase_object": "PhaseObject"}
    )
    __all__ = list(__dir__())
