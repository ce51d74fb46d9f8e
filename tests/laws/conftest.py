"""What tests of several laws share."""

import pytest


@pytest.fixture(params=["synchronous", "threads", "processes", "distributed"])
def scheduler(request):
    """Options for a scheduler."""
    if request.param == "distributed":
        return {"scheduler": request.getfixturevalue("client")}
    if request.param == "processes":
        return {"scheduler": "processes", "pool": request.getfixturevalue("pool")}
    return {"scheduler": request.param}
