"""Write results to files and stores: zarr, NetCDF, NumPy, HyperSpy and TIFF."""
