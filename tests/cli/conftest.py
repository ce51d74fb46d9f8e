"""Fixtures for the tests of the command line."""

import sys

import pytest


@pytest.fixture(autouse=True)
def forget_own_code():
    """Each command is a process of its own: forget the module of the user."""
    yield
    sys.modules.pop("mine", None)
