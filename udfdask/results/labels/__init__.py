"""Results as xarray Datasets, with named dimensions. Needs xarray."""

from udfdask.errors import missing_package

try:
    import xarray  # noqa: F401
except ImportError as error:
    raise missing_package("xarray", purpose="a labeled result", extra="xarray") from error
