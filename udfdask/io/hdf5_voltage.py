"""Read the acceleration voltage of the electrons from an HDF5 file, if the file says it.

Nion Swift writes it into the properties of a dataset, in volts. In NeXus, NXem describes the source
of electrons, and NXmx the energy of the beam, which may be one of photons.

https://github.com/nion-software/nionswift/blob/master/nion/swift/model/Metadata.py,
https://manual.nexusformat.org/classes/applications/NXem.html,
https://manual.nexusformat.org/classes/applications/NXmx.html
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np

from udfdask.errors import UDFError
from udfdask.geometry.electrons import volts
from udfdask.io.hdf5_axes import get_item, nion_properties, text

_OF_NION = (("instrument", "high_tension"), ("hardware_source", "autostem", "high_tension_v"))
"""Places in the metadata of Nion Swift, in its own order."""

_SOURCE = "instrument/ebeam_column/electron_source/voltage"

_OF_ELECTRONS = re.compile(r"electron|arina|ela\b|quadro|singla", re.IGNORECASE)
"""Words in the description of a detector, or of the beam, that mean electrons."""

_DESCRIPTIONS = ("instrument/detector/description", "source/probe", "instrument/source/probe")


def read_voltage(opened: Any, dataset: Any) -> float | None:
    """Return the voltage in volts of a dataset of an open file; None if it is not known."""
    return _of_nion(dataset) or _of_nxem(opened) or _of_beam(opened)


def _of_nion(dataset: Any) -> float | None:
    metadata = nion_properties(dataset).get("metadata")
    for path in _OF_NION:
        value = metadata
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if (found := _volts(value, "V")) is not None:
            return found
    return None


def _of_nxem(opened: Any) -> float | None:
    """Return the voltage of NXem if that of the instrument, and those of all events, are equal."""
    found = set()
    for entry in map(str, opened):
        measurement = get_item(opened, f"{entry}/measurement")
        events = [f"{name}/" for name in map(str, getattr(measurement, "keys", list)())]
        for place in ("", *events):
            found.add(_in_dataset(opened, f"{entry}/measurement/{place}{_SOURCE}", "V"))
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _of_beam(opened: Any) -> float | None:
    """Return the energy of the beam of NXmx; None if the file does not say that of electrons."""
    words = [get_item(opened, f"entry/{name}") for name in _DESCRIPTIONS]
    said = " ".join(text(item[()]) or "" for item in words if getattr(item, "size", None) == 1)
    if not _OF_ELECTRONS.search(said):
        return None
    return _in_dataset(opened, "entry/instrument/beam/incident_energy", "eV")


def _in_dataset(opened: Any, path: str, unit: str) -> float | None:
    """Return the voltage in a dataset of one number, which is in `unit` if it has no unit."""
    item = get_item(opened, path)
    if getattr(item, "size", None) != 1:
        return None
    return _volts(np.ravel(item[()])[0], text(item.attrs.get("units")) or unit)


def _volts(value: Any, unit: str) -> float | None:
    """Return a number with a unit in volts; None if it is no voltage, such as 0 for unknown."""
    with contextlib.suppress(UDFError, TypeError, ValueError):
        return volts((float(value), unit))
    return None
