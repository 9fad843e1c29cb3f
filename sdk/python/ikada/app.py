"""Functions as tasks: a decorator names them, `enqueue` submits them, a worker runs them.

A task carries `{"task": name, "args": [..], "kwargs": {..}}`, so any client in any language can submit one.
"""

from __future__ import annotations

import asyncio
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, Optional, Set, TypeVar

from .client import Client, Urls
from .context import TaskContext
from .handle import Handle
from .models import NewTask

if TYPE_CHECKING:
    # Known to every type checker; at run time it is not needed, so that this stays without dependencies on Python 3.9.
    from typing_extensions import ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")
R = TypeVar("R")
Program = Callable[[TaskContext], Any]


class BoundTask(Generic[P, R]):
    """A function that is also a task. Calling it runs it here and now; `enqueue` has a worker run it.

    Type checkers hold the arguments of `enqueue` against those of the function.
    """

    def __init__(self, app: "App", function: "Callable[P, R]", name: str, settings: NewTask):
        functools.update_wrapper(self, function)
        self.app, self.function, self.name, self.settings = app, function, name, settings

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def new(self, *args: P.args, **kwargs: P.kwargs) -> NewTask:
        """The task that would be submitted; for batches and follow-ups."""
        return replace(self.settings, payload={"task": self.name, "args": list(args), "kwargs": kwargs})

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Submits a call. Arguments are JSON values."""
        return self.app.client.enqueue(self.new(*args, **kwargs))

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Submits a call, for asyncio."""
        return await asyncio.to_thread(self.app.client.enqueue, self.new(*args, **kwargs))

    def options(self, **settings: Any) -> "BoundTask[P, R]":
        """The same task with other settings: `send.options(delay_s=60, key="ann").enqueue(..)`."""
        return BoundTask(self.app, self.function, self.name, replace(self.settings, **settings))


class App:
    """A set of tasks and the cluster that they go to. Takes what `Client` takes."""

    def __init__(self, urls: Optional[Urls] = None, *, client: Optional[Client] = None, **settings: Any):
        self.client = client or Client(urls, **settings)
        self.tasks: Dict[str, BoundTask[..., Any]] = {}
        self.programs: Dict[str, Callable[[TaskContext], Any]] = {}
        self._program_queues: Set[str] = set()

    def task(self, *, queue: str = "default", name: Optional[str] = None, **settings: Any) -> "Callable[[Callable[P, R]], BoundTask[P, R]]":
        """Makes a function a task. Settings are those of `NewTask`: `max_attempts`, `ttl_s`, `timeout_s`, `priority`, `backoff_s`, ..

        `name` is what travels; the function's own name when absent. It must not change while tasks of that name wait.
        """
        def bind(function: "Callable[P, R]") -> "BoundTask[P, R]":
            known = name or function.__name__
            if known in self.tasks:
                raise ValueError(f"there is a task named {known!r} already; give one of them a name of its own")
            bound: BoundTask[P, R] = BoundTask(self, function, known, NewTask(queue=queue, **settings))
            self.tasks[known] = bound
            return bound

        return bind

    def program(self, *, queue: str = "default", name: Optional[str] = None) -> "Callable[[Program], Program]":
        """Makes a function the program of jobs and tasks that name it. It gets a `TaskContext`: `read_input`, `settings`, `write_output`.

        The cluster must know the name: `ikada program push --handler NAME`. `queue` is where its jobs put their tasks.
        """
        def bind(function: "Program") -> "Program":
            known = name or function.__name__
            if known in self.programs:
                raise ValueError(f"there is a program named {known!r} already; give one of them a name of its own")
            self.programs[known] = function
            self._program_queues.add(queue)
            return function

        return bind

    @property
    def queues(self) -> List[str]:
        """The queues of all tasks and programs."""
        return sorted({task.settings.queue or "default" for task in self.tasks.values()} | self._program_queues)
