"""End a computation on one of dask's local schedulers at a deadline.

The scheduler waits in the thread of the caller for the futures of its pool. At the deadline, the
pool ends these futures with the error, which the scheduler raises. A task that runs in a thread
cannot be stopped: the thread is left behind. Processes are ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, InvalidStateError, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Self

from dask import config, local, threaded
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from udfdask.errors import ArgumentValueError
from udfdask.graph.dask_internals.running import process_pool, submitted_keys
from udfdask.scheduling.time_limit.daemon_threads import DaemonThreads
from udfdask.scheduling.time_limit.deadline import Deadline, innermost_user_line
from udfdask.scheduling.time_limit.task_names import TaskNames

_LONGER = "A longer timeout= gives the run more time"
_THREADS = (
    "No other task starts. A running task cannot be stopped: its thread goes on until the task "
    f"ends, or until Python does. {_LONGER}; on the scheduler 'processes', and on a cluster, tasks "
    "that hang can be ended"
)
_PROCESSES = (
    "No other task starts, and the processes of the run have been ended. Tasks are sent to "
    f"processes in groups: with chunksize=1, only running ones are listed. {_LONGER}"
)
_FOREIGN = (
    "No other task starts. Running tasks go on in the pool that was passed to dask: end it to end "
    f"them. {_LONGER}"
)
_SYNCHRONOUS = f"The scheduler 'synchronous' checks the time only between tasks. {_LONGER}"


@contextmanager
def ending_at(
    deadline: Deadline | None, names: TaskNames, get: Any, options: Mapping[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield a scheduler's function and its options, with which it stops at the deadline."""
    options = dict(options)
    if deadline is None:
        yield get, options
        return
    n = count_workers(get, options)
    given = options.get("pool") or config.get("pool", None)
    in_processes = getattr(get, "__module__", "") == "dask.multiprocessing"
    with ExitStack() as stack:

        def ending(submit: Any, remedy: str, **more: Any) -> _DeadlinePool:
            """Return a pool whose futures fail at the deadline."""
            return stack.enter_context(_DeadlinePool(submit, n, deadline, names, remedy, **more))

        if get is None or get is local.get_sync:
            stack.enter_context(_checking_between_tasks(deadline))
        elif isinstance(get, partial) and get.func is local.get_async:  # made from an executor
            get = partial(local.get_async, ending(get.args[0], _FOREIGN).submit, n)
        elif not (get is threaded.get or in_processes):
            raise ArgumentValueError(
                f"timeout= works on the schedulers of dask, not on {get!r}: leave it out, or use "
                "'threads', 'processes', 'synchronous' or a distributed.Client"
            )
        elif given is not None:
            options["pool"] = ending(_executor(given).submit, _FOREIGN)
        elif in_processes:
            processes = process_pool(n, options.pop("initializer", None))
            on_end = partial(_end, processes)
            options["pool"] = ending(processes.submit, _PROCESSES, on_end=on_end)
            stack.enter_context(processes)  # first to exit: it waits for tasks, until the deadline
        else:
            threads = stack.enter_context(DaemonThreads(n))
            options["pool"] = ending(threads.submit, _THREADS, stack_of=threads.stack_of)
        yield get, options


def count_workers(get: Any, options: Mapping[str, Any]) -> int:
    """Return the number of tasks that a local scheduler may run at the same time."""
    if get is None or get is local.get_sync:
        return 1
    pool = options.get("pool") or config.get("pool", None)
    asked = options.get("num_workers") or config.get("num_workers", None)
    if isinstance(get, partial) and len(get.args) > 1:  # dask has made it from an executor
        asked = get.args[1]
    own = None if pool is None else getattr(_executor(pool), "_max_workers", None)
    return int(own or asked or CPU_COUNT)


def _executor(pool: Any) -> Any:
    """Return the executor of a pool, which may be a pool of `multiprocessing`."""
    return pool if hasattr(pool, "submit") else local.MultiprocessingPoolExecutor(pool)


class _DeadlinePool(Executor):
    """Passes the tasks of a scheduler to another pool; at the deadline, their futures fail."""

    def __init__(
        self,
        submit: Callable[..., Future[Any]],
        n: int,
        deadline: Deadline,
        names: TaskNames,
        remedy: str,
        *,
        stack_of: Callable[[Future[Any]], list[str]] = lambda future: [],
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._max_workers = n  # dask reads it
        self._submit = submit
        self._deadline = deadline
        self._names = names
        self._remedy = remedy
        self._stack_of = stack_of
        self._on_end = on_end
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._running: dict[Future[Any], tuple[list[Any], Future[Any]]] = {}
        self._timer = threading.Timer(deadline.left, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a batch of tasks."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._error is not None:
                future.set_exception(self._error)
                return future
            inner = self._submit(function, *args, **kwargs)
            self._running[future] = (submitted_keys(args), inner)
        inner.add_done_callback(partial(self._pass_on, future))
        return future

    def _pass_on(self, future: Future[Any], inner: Future[Any]) -> None:
        """Pass on the result of a batch, unless its time is over."""
        with self._lock:
            self._running.pop(future, None)
        with suppress(InvalidStateError):  # it has failed at the deadline
            try:
                future.set_result(inner.result())
            except BaseException as error:  # noqa: BLE001  # raised by the scheduler
                future.set_exception(error)

    def _expire(self) -> None:
        """End all futures."""
        with self._lock:
            running = dict(self._running)
            lines = [
                f"{self._names.describe(key)}{self._place(inner)}"
                for keys, inner in running.values()
                for key in keys
            ]
            self._error = self._deadline.error(lines, self._remedy)
        for future in running:
            with suppress(InvalidStateError):  # it has just ended
                future.set_exception(self._error)
        self._on_end()

    def _place(self, inner: Future[Any]) -> str:
        """Return the line that a task is executing, in words."""
        stack = self._stack_of(inner)
        return f", at {innermost_user_line(stack)}" if stack else ""


@contextmanager
def _checking_between_tasks(deadline: Deadline) -> Iterator[None]:
    """Raise at the first task of this thread that would start after the deadline."""
    this_thread = threading.get_ident()

    def check(*_: Any) -> None:
        if threading.get_ident() == this_thread and not deadline.left:
            raise deadline.error([], _SYNCHRONOUS)

    with Callback(pretask=check):
        yield


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they do."""
    # Python 3.14 has a method for it
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        with suppress(OSError, ValueError):
            process.kill()
    # A process can end while it sends a result. The thread that reads would wait for the rest, as
    # long as this process can write too: of seven kills during a result of 1 GiB, one hung.
    results = getattr(pool, "_result_queue", None)
    with suppress(OSError, AttributeError):
        results._writer.close()  # type: ignore[union-attr]
