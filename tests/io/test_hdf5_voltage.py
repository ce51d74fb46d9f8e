"""The acceleration voltage in HDF5 files of other programs."""

import json

import numpy as np
import pytest

import udfdask as ud
from udfdask import Axis
from udfdask.io import open_file
from udfdask.udfs import SumSigUDF, VirtualDetectorUDF

h5py = pytest.importorskip("h5py", reason="it is in the io extra")

SCAN = np.ones((3, 4, 8, 8), np.uint16)
SOURCE = "ebeam_column/electron_source/voltage"


@pytest.mark.parametrize(
    ("metadata", "voltage"),
    [
        ({"instrument": {"high_tension": 100000}}, 100e3),
        ({"hardware_source": {"autostem": {"high_tension_v": 60000.0}}}, 60e3),
        (
            {
                "instrument": {"high_tension": 200000},
                "hardware_source": {"autostem": {"high_tension_v": 60000}},
            },
            200e3,
        ),
        ({"instrument": {"high_tension": None}, "hardware_source": {"autostem": {}}}, None),
        ({"instrument": "simulated", "hardware_source": {"autostem": {"high_tension_v": 0}}}, None),
        ([], None),
    ],
)
@pytest.mark.parametrize("with_axes", [True, False])
def test_nion_swift(tmp_path, metadata, voltage, with_axes):
    scales = [{"offset": 0.0, "scale": 1.0, "units": unit} for unit in ("nm", "nm", "rad", "rad")]
    properties = {"metadata": metadata} | (
        {"dimensional_calibrations": scales} if with_axes else {}
    )
    with h5py.File(tmp_path / "data_1.h5", "w") as file:
        file["data"] = SCAN
        file["data"].attrs["properties"] = json.dumps(properties)
    assert open_file(tmp_path / "data_1.h5").voltage == voltage


@pytest.mark.parametrize(
    ("sources", "voltage"),
    [
        ({"instrument": (300e3, "V")}, 300e3),
        ({"event1/instrument": (200, "kV")}, 200e3),
        ({"instrument": (80.0, "kV"), "event1/instrument": (80000, None)}, 80e3),
        ({"event1/instrument": (200e3, "V"), "event2/instrument": (80e3, "V")}, None),
        ({"event1/instrument": (0.0, "V"), "event2/instrument": (80e3, "V")}, 80e3),
        ({"instrument": ([300e3, 200e3], "V")}, None),
        ({"instrument": (300e3, "A")}, None),
    ],
)
def test_nxem(tmp_path, sources, voltage):
    with h5py.File(tmp_path / "scan.nxs", "w") as file:
        file["entry1/definition"] = "NXem"
        file["entry1/measurement/event1/image1/intensity"] = SCAN
        file["gone"] = h5py.SoftLink("/nowhere")
        for place, (value, unit) in sources.items():
            item = file.create_dataset(f"entry1/measurement/{place}/{SOURCE}", data=value)
            if unit is not None:
                item.attrs["units"] = unit
    assert open_file(tmp_path / "scan.nxs").voltage == voltage


@pytest.mark.parametrize(("probe", "voltage"), [("electron", 200e3), ("x-ray", None)])
@pytest.mark.parametrize("source", ["entry/source", "entry/instrument/source"])
def test_nexus_without_a_detector(tmp_path, probe, voltage, source):
    with h5py.File(tmp_path / "scan.nxs", "w") as file:
        file["entry/data/data"] = SCAN
        file[f"{source}/probe"] = probe
        file["entry/instrument/beam/incident_energy"] = 200.0
        file["entry/instrument/beam/incident_energy"].attrs["units"] = "keV"
    assert open_file(tmp_path / "scan.nxs").voltage == voltage


def test_units_are_converted_with_the_voltage_of_the_file(tmp_path):
    with h5py.File(tmp_path / "scan.nxs", "w") as file:
        file["entry/data/data"] = SCAN
        file[f"entry/measurement/instrument/{SOURCE}"] = 300e3
    opened = open_file(tmp_path / "scan.nxs")
    axes = [Axis(name=name, unit="1/nm", scale=0.5) for name in ("y", "x", "ky", "kx")]
    disk = VirtualDetectorUDF("disk", cy=4, cx=4, r="2 mrad")
    found = ud.run_udf(opened, disk, axes=axes).compute()["intensity"]
    wanted = ud.run_udf(opened.array, disk, axes=axes, voltage="300 kV").compute()["intensity"]
    np.testing.assert_array_equal(found, wanted)
    sums = ud.run_udf(opened, SumSigUDF()).compute()["intensity"]
    assert (found < sums).all()
