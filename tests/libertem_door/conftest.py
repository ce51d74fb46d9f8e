"""The data of the tests here, and LiberTEM to compare with."""

import dask.array as da
import pytest


@pytest.fixture(scope="session")
def data():
    from libertem_objects import make_data

    return make_data()


@pytest.fixture
def x(data):
    return da.from_array(data, chunks=(2, 3, 32, 32))


@pytest.fixture(scope="session")
def context():
    import libertem.api as lt

    with lt.Context.make_with("inline") as made:
        yield made
