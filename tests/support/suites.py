"""Two suites: the default one takes three minutes, the full one (`pytest --full`) has every test.

The default suite leaves out the tests with the mark `full`, and those that start processes of dask
(the fixtures and schedulers of `IN_PROCESSES`), unless they have the mark `always`. Of the sets of
parameters of a test it has at most `SETS`, and those of `COMPILED` only if there are no others; of
what hypothesis generates at most `EXAMPLES`, of the dtypes that it draws those of `few_of`. A test
that is named on the command line (`file.py::test`) runs as in the full suite.

pytest has no public way to drop parameter sets before it makes an item of each. So the sets are
taken from `Metafunc._calls`, which pytest itself makes items of.
"""

import os
import re

import pytest
from hypothesis import HealthCheck, settings

SETS = 2
EXAMPLES = 10
CLUSTERS = {"client", "frisky", "mixed"}
IN_PROCESSES = {"client", "cluster", "pool", "processes", "distributed", "frisky"}
# a process compiles functions of these for 8 s, of other sparse arrays for 2 s
COMPILED = {"GCXS", "sparse.GCXS"}


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        help="run every test with all of its parameters, in place of the suite of three minutes",
    )


def pytest_configure(config):
    """Choose the number of examples before the modules of tests are imported."""
    # Freed arrays go back to the system, as in dask's workers; child processes inherit this.
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", "65536")
    # no test depends on time
    patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("default", max_examples=EXAMPLES, **patient)
    settings.register_profile("full", **patient)
    settings.load_profile("full" if is_full(config) else "default")


def is_full(config):
    """Whether this is a run of the full suite, or of tests that are named one by one."""
    return config.getoption("--full") or any("::" in str(arg) for arg in config.args)


def examples(full, default=EXAMPLES):
    """The number of examples of a test: `full`, in the default suite no more than `default`."""
    return full if settings.get_current_profile_name() == "full" else min(full, default)


def few_of(values):
    """All values; in the default suite the first and the last: a kernel takes seconds a dtype."""
    return values if settings.get_current_profile_name() == "full" else spread(values, SETS)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    result = yield
    if not is_full(metafunc.config):
        if not for_default(metafunc.definition):
            metafunc._calls = metafunc._calls[:1]  # stands for all of them, and is deselected
        else:
            slow = IN_PROCESSES | COMPILED
            here = [call for call in metafunc._calls if slow.isdisjoint(call.id.split("-"))]
            metafunc._calls = spread(here or metafunc._calls, SETS)
    return result


def for_default(test):
    if test.get_closest_marker("always"):
        return True
    in_processes = IN_PROCESSES.intersection(test.fixturenames)
    return not (in_processes or test.get_closest_marker("full"))


def spread(sets, count):
    """At most `count` of the sets: the first, the last and others at equal distances.

    Where two lists of parameters of equal length are combined, that is the diagonal.
    """
    if len(sets) <= count:
        return sets
    return [sets[i * (len(sets) - 1) // (count - 1)] for i in range(count)]


def pytest_collection_modifyitems(config, items):
    """Leave the other tests to the full suite, and begin with the tests that start a cluster.

    Its processes take 0.4 GB. They end before the processes of the tests have grown by as much.
    """
    if is_full(config):
        return
    kept, left_out = [], []
    for item in items:
        is_doctest = not isinstance(item, pytest.Function)
        (kept if is_doctest or for_default(item) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(kept, key=lambda item: CLUSTERS.isdisjoint(item.fixturenames))


def without_address(value):
    """Return a name for a parameter that is the same in each process: without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
