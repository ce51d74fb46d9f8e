"""Records what a scheduler did: the worker of each task, and the resources that it was sent for."""

from distributed.diagnostics.plugin import SchedulerPlugin

NAME = "test-task-record"


class TaskRecord(SchedulerPlugin):
    """Notes every task that ends: its layer, its worker, its resources."""

    name = NAME

    def start(self, scheduler):
        self.scheduler = scheduler
        self.tasks = []

    def transition(self, key, start, finish, *args, **kwargs):
        if start == "processing" and finish == "memory":
            task = self.scheduler.tasks[key]
            worker = self.scheduler.workers[kwargs["worker"]].name
            self.tasks.append((str(key), str(worker), dict(task.resource_restrictions or {})))


def take(dask_scheduler):
    """Return what has been recorded since the last time; runs inside the scheduler."""
    plugin = dask_scheduler.plugins[NAME]
    tasks, plugin.tasks = plugin.tasks, []
    return tasks
