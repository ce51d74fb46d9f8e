"""Progressive runs in an event loop."""

import asyncio

import pytest

import progressive_udfs as pu
import udf_zoo
import udfdask as ud
from progressive_cases import assert_same, long_array, worker_of
from udfdask.udfs import SumUDF

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")


@pytest.mark.point(28)
class TestAsync:
    def test_async_for_and_await(self, x, options):
        expected = ud.run_udf(x, udf_zoo.Chain()).compute(scheduler="synchronous")

        async def last():
            async for snapshot in ud.run_udf_iter(x, udf_zoo.Chain(), **options):
                found = snapshot
            return found, await ud.run_udf_iter(x, udf_zoo.Chain(), **options)

        for snapshot in asyncio.run(last()):
            assert_same(snapshot.buffers, expected)

    def test_close(self, x):
        async def main():
            iterator = ud.run_udf_iter(x, SumUDF())
            found = []
            async for snapshot in iterator:
                found.append(snapshot)
                if len(found) == 2:
                    iterator.close()
            return found

        assert len(asyncio.run(main())) == 2

    def test_cancelled_by_another_coroutine(self):
        gates = pu.Gates("async cancel")

        async def main():
            udf = pu.Gated(gates.name, closed=(2,))
            iterator = ud.run_udf_iter(long_array(9), udf, scheduler="synchronous")

            async def read():
                async for _ in iterator:
                    pass

            task = asyncio.create_task(read())
            while len(gates.started) < 3:
                await asyncio.sleep(0.001)
            iterator.close()
            with pytest.raises(ud.UDFRunCancelled, match=r"after [012] of 9"):
                await task
            gates.open.set()

        asyncio.run(main())

    def test_a_cancelled_task_stops_the_run(self):
        gates = pu.Gates("task cancel")

        async def main():
            udf = pu.Gated(gates.name, closed=(1,))
            iterator = ud.run_udf_iter(long_array(50), udf, scheduler="synchronous")
            await anext(iterator)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(iterator), 0.05)
            gates.open.set()
            thread = worker_of(iterator)
            await asyncio.to_thread(thread.join, 30)
            assert not thread.is_alive()

        asyncio.run(main())
        assert len(gates.started) <= 3

    def test_asynchronous_client(self, x):
        async def main():
            async with (
                distributed.LocalCluster(
                    n_workers=1,
                    threads_per_worker=1,
                    processes=False,
                    dashboard_address=":0",
                    asynchronous=True,
                ) as cluster,
                distributed.Client(cluster, asynchronous=True) as client,
            ):
                return await ud.run_udf_iter(x, udf_zoo.Chain(), scheduler=client)

        expected = ud.run_udf(x, udf_zoo.Chain()).compute(scheduler="synchronous")
        assert_same(asyncio.run(main()).buffers, expected)
