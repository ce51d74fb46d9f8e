"""Files of results, as xarray reads them."""

from pathlib import Path

import xarray as xr


def read_saved(path):
    engine = "zarr" if Path(path).is_dir() else "h5netcdf"
    with xr.open_dataset(path, engine=engine) as dataset:
        return dataset.load()
