"""Two processes with two threads each: all libraries have one thread in each task.

This is a program of its own: the cluster changes variables of the process that makes it, and so
the number of threads that numba would have there.
"""

import itertools
import os
import time

import dask
import dask.array as da
import distributed
import numpy as np

import udfdask as ud


def most_threads():
    import numba
    from threadpoolctl import threadpool_info

    np.ones((64, 64)) @ np.ones((64, 64))
    return max([numba.get_num_threads(), *(one["num_threads"] for one in threadpool_info())])


class Sees(ud.UDF):
    def get_result_buffers(self):
        return {
            name: self.buffer(kind="nav", dtype="float64")
            for name in ("process", "start", "most", "stop")
        }

    def process_partition(self, partition):
        self.results.process = os.getpid()
        self.results.start = time.time()
        most = []
        for _ in range(5):
            most.append(most_threads())
            time.sleep(0.02)
        self.results.most = max(most)
        self.results.stop = time.time()


def main():
    # without these, the nanny sets all libraries to one thread before the worker starts
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {"distributed.nanny.pre-spawn-environ": dict.fromkeys(names, "4")}
    x = da.ones((32, 4, 4), chunks=(1, 4, 4), dtype="float32")
    with (
        dask.config.set(environment),
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as own,
        distributed.Client(own, set_as_default=False) as client,
    ):
        assert min(client.run(most_threads).values()) == 4
        done = ud.run_udf(x, Sees()).compute(scheduler=client)
        assert min(client.run(most_threads).values()) == 4
    assert done["most"].tolist() == [1] * 32
    tasks = sorted(zip(done["process"], done["start"], done["stop"], strict=True))
    pairs = [(a, b) for a, b in itertools.pairwise(tasks) if a[0] == b[0]]
    assert any(b[1] < a[2] for a, b in pairs), "no two tasks of a process overlapped"


if __name__ == "__main__":
    main()
