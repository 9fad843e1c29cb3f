"""A task that was submitted, and the way to its result."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Optional

from .errors import NotFound, TaskFailed, TimedOut
from .models import Task

if TYPE_CHECKING:
    from .client import Client

_LOOK_FIRST_S, _LOOK_MAX_S = 0.02, 1.0


class Handle:
    """Names one task."""

    def __init__(self, client: "Client", id: str):
        self._client = client
        self.id = id

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    def task(self) -> Task:
        """The task as it stands."""
        return self._client.task(self.id)

    def cancel(self) -> None:
        """Cancels it, unless it is finished."""
        self._client.cancel(self.id)

    def wait(self, timeout_s: Optional[float] = None) -> Task:
        """Waits until it is finished. Raises `TimedOut`; the task goes on all the same."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pause_s = _LOOK_FIRST_S
        while True:
            task = self.task()
            if task.is_finished:
                return task
            left_s = pause_s if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"task {self.id} is still {task.state} after {timeout_s} s", code="timed_out")
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, _LOOK_MAX_S)

    def result(self, timeout_s: Optional[float] = None) -> Any:
        """Waits for the result. Raises `TaskFailed` if the task died or was cancelled."""
        try:
            task = self.wait(timeout_s)
        except NotFound as error:
            raise TaskFailed(f"task {self.id} is gone: its retention time is over", code="task_not_found") from error
        if task.state == "done":
            return task.result
        said = next((one.error for one in reversed(task.attempts) if one.error), None)
        raise TaskFailed(f"task {self.id} is {task.state}: {said or task.dead_reason or 'no reason was given'}", code=task.dead_reason or task.state)

    async def wait_async(self, timeout_s: Optional[float] = None) -> Task:
        """The same for asyncio; no thread is held while it waits."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pause_s = _LOOK_FIRST_S
        while True:
            task = await asyncio.to_thread(self.task)
            if task.is_finished:
                return task
            left_s = pause_s if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"task {self.id} is still {task.state} after {timeout_s} s", code="timed_out")
            await asyncio.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, _LOOK_MAX_S)

    async def result_async(self, timeout_s: Optional[float] = None) -> Any:
        """The same for asyncio."""
        await self.wait_async(timeout_s)
        return await asyncio.to_thread(self.result, 0)
