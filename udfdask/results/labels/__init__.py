"""Results with names for their dimensions, as xarray has them. Needs xarray."""

from udfdask.errors import missing_package

try:
    import xarray  # noqa: F401
except ImportError as error:
    raise missing_package("xarray", purpose="a labelled result", extra="xarray") from error
