"""The context of a chunk task depends on all of its blocks, not only on the first one."""

import numpy as np
import pytest

from stand_in import numpy_standing_in_for_cupy
from udfdask.backends.backend import CUPY, NUMPY
from udfdask.chunk.run_chunk import run_chunk
from udfdask.testing.eager_run import make_recipe
from udfdask.udfs import SumUDF

DATA = np.arange(24.0).reshape(3, 8)


@pytest.mark.parametrize("native", [NUMPY, CUPY])
@pytest.mark.parametrize("place", [0, 1])
def test_one_signal_block_on_the_device(native, place):
    """It is taken on the stream on which it is made, which has not done so yet."""
    halves = [DATA[:, :4], DATA[:, 4:]]
    with numpy_standing_in_for_cupy() as cupy:
        there = cupy.asarray(np.zeros((3, 4)))
        cupy.cuda.get_current_stream().put(lambda: np.copyto(there._array, halves[place]))
        recipe = make_recipe(
            [SumUDF()],
            shape=DATA.shape,
            dtype=DATA.dtype,
            sig_dims=1,
            sig_chunks=[[4, 4]],
            backends=(CUPY,),
            native=native,
        )
        blocks = [there if number == place else half for number, half in enumerate(halves)]
        (partial,) = run_chunk(recipe, 0, blocks)
        found = partial.arrays["intensity"]
        found = found if native == NUMPY else found.get()
        np.testing.assert_array_equal(found, DATA.sum(axis=0))
