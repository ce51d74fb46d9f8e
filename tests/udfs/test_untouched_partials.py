"""Built-in UDFs merge partial results that other tasks may hold, without a copy."""

import numpy as np
import pytest

from udfdask.chunk.merge import merge_group
from udfdask.chunk.run_chunk import run_chunk
from udfdask.testing.eager_run import make_recipe
from udfdask.udfs import LogsumUDF, StdDevUDF, SumUDF


class SumThatWritesToSrc(SumUDF):
    def merge(self, dest, src):
        dest.intensity[:] += src.intensity
        src.intensity[:] = 0


@pytest.mark.full
@pytest.mark.parametrize("builtin", [SumUDF, StdDevUDF, LogsumUDF])
def test_what_built_in_udfs_merge_stays_as_it_is(builtin):
    """It is not copied for them, unlike for their subclasses."""
    udfs = [builtin(), SumThatWritesToSrc()]
    recipe = make_recipe(udfs, shape=(2, 2, 3, 3), dtype="int64", nav_chunks=[(1, 1), (2,)])
    blocks = np.random.default_rng(0).integers(1, 99, (2, 1, 2, 3, 3))
    for number in (0, 1):
        partials = [run_chunk(recipe, k, (block,))[number] for k, block in enumerate(blocks)]
        before = [{name: a.copy() for name, a in p.arrays.items()} for p in partials]
        merge_group(recipe, number, partials)
        for partial, was in zip(partials, before, strict=True):
            for name, array in partial.arrays.items():
                np.testing.assert_array_equal(array, was[name])
