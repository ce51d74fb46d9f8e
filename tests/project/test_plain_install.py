"""Every public name on the plain install: the core dependencies, and no package that is optional.

`.ci/run` makes such an environment and sets `UDFDASK_PLAIN_INSTALL`. An optional package that is
installed there is an error. There the examples of all public names run, which print numbers.
"""

import doctest
import itertools
import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import udfdask as ud
from udfdask import corrections, io, masks, plotting, testing, udfs

PLAIN = bool(os.environ.get("UDFDASK_PLAIN_INSTALL"))
TOOLS = {"pytest"}  # what runs this file
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def optional_packages():
    """Names of the distributions that only extras bring."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = itertools.chain(*project["optional-dependencies"].values())
    core, optional = (
        {re.match(r"[\w.-]+", r).group() for r in some}
        for some in (project["dependencies"], extras)
    )
    # dask[distributed] is an extra of dask
    return (optional | {"distributed"}) - core - TOOLS - {"udfdask"}


@pytest.mark.skipif(not PLAIN, reason="this environment is meant to have optional packages")
def test_no_optional_package_is_installed():
    installed = {found.name.lower() for found in metadata.distributions()}
    assert not optional_packages() & installed


@pytest.mark.skipif(not PLAIN, reason="the default run has these examples as doctests")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module in (ud, corrections, io, masks, plotting, testing, udfs)
        for name in module.__all__
        if callable(getattr(module, name))
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_examples_run_or_name_the_extra_they_need(module, name):
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(getattr(module, name), name)
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    try:
        runner.run(example)
    except doctest.UnexpectedException as found:
        kind, error, _ = found.exc_info
        assert issubclass(kind, ImportError)
        assert re.search(r'pip install "udfdask\[\w+\]"', str(error))
