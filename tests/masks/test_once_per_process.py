"""Masks are computed once per process, however often their container is made again."""

import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from counted_masks import CALLS, Dot, counted, filed
from counting import counts
from udfdask import Shape, Slice
from udfdask.masks import MaskContainer


def piece(*shape):
    return Slice(origin=(0,) * (len(shape) + 1), shape=Shape((1, *shape), sig_dims=len(shape)))


def calls(label):
    return CALLS.count(label)


@pytest.fixture
def label(request):
    """A label of this test alone: what was computed stays from test to test."""
    return f"{request.node.nodeid} {object()!r}"


DATA = np.random.default_rng(1).random((20, 2, 4, 4))
X = da.from_array(DATA, chunks=(1, 2, 4, 4))  # 20 chunks


class TestInOneProcess:
    def test_containers_that_are_equal(self, label):
        made = [MaskContainer(partial(counted, label)) for _ in range(5)]
        first = made[0].get(piece(4))
        assert all(masks.get(piece(4)) is first for masks in made)
        assert all(masks.computed_masks is made[0].computed_masks for masks in made)
        assert calls(label) == 1

    def test_threads_that_start_together(self, label):
        start = threading.Barrier(8)

        def use(_):
            masks = MaskContainer([partial(counted, label)])
            start.wait()
            return masks.get(piece(3, 4))

        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(use, range(8)))
        assert calls(label) == 1
        assert all(matrix is got[0] for matrix in got)

    def test_a_factory_may_count_its_calls(self):
        """It changes what it carries, and so its pickle."""
        made = []

        def use(_):
            def factory():
                made.append(1)
                return np.ones((2, 3))

            return MaskContainer(factory).get(piece(3))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(use, range(40)))
        assert len(made) == 1


class TestInARun:
    def want(self):
        mask = np.arange(16.0).reshape(4, 4)
        dots = (DATA * mask).sum(axis=(2, 3))
        return np.stack([dots, dots], axis=-1)

    @pytest.mark.parametrize("parameter", [False, True])
    def test_in_threads(self, label, parameter):
        def how():
            factory = partial(counted, label, shape=(4, 4))
            return MaskContainer([factory, factory], count=2)

        res = ud.run_udf(X, Dot(masks=how() if parameter else how), sig_dims=2)
        assert not (parameter and calls(label))  # building computes nothing
        res = res.compute(scheduler="threads", num_workers=4)
        np.testing.assert_allclose(res["dots"], self.want(), rtol=1e-5)
        assert calls(label) == 2  # two factories, once each

    @pytest.mark.full
    @pytest.mark.parametrize("parameter", [False, True])
    def test_on_processes(self, tmp_path, parameter):
        masks = MaskContainer(
            [partial(filed, str(tmp_path), os.getpid, (4, 4)), lambda: np.ones((4, 4))]
        )
        udf = Dot(masks=masks if parameter else lambda: masks)
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            res = ud.run_udf(X, udf, sig_dims=2).compute(scheduler="processes", pool=pool)
        np.testing.assert_allclose(res["dots"], np.stack([DATA.sum(axis=(2, 3))] * 2, axis=-1))
        made = counts(tmp_path)
        assert 1 <= len(made) <= 2
        assert set(made.values()) == {1}
        assert f"made-{os.getpid()}" not in made
