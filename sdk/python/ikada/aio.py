"""The client for asyncio: the same calls, awaited.

Each call runs in a thread of the default pool. Waits for tasks and jobs hold no thread; a claim or a lease that waits for its turn holds one
until then.
"""

from __future__ import annotations

import asyncio
import os
import time
from types import TracebackType
from typing import Any, AsyncIterator, BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from .client import Client, Urls
from .errors import TimedOut
from .handle import Handle
from .jobs import Job, JobResult, Jobs
from .lease import Lease
from .models import ClaimedTask, Json, NewTask, ObjectInfo, Outcome, Task

T = TypeVar("T")
_END = object()
_LOOK_FIRST_S, _LOOK_MAX_S = 0.05, 1.0


class AsyncClient:
    """A cluster, for asyncio. Takes what `Client` takes."""

    def __init__(self, urls: Optional[Urls] = None, **settings: Any):
        self.sync = Client(urls, **settings)
        self.jobs = AsyncJobs(self.sync.jobs)

    def close(self) -> None:
        """Closes idle connections; the client can be used again."""
        self.sync.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    # Tasks

    async def enqueue(self, task: Optional[NewTask] = None, *, request: Optional[str] = None, **settings: Any) -> Handle:
        """Submits one task."""
        return await asyncio.to_thread(self.sync.enqueue, task, request=request, **settings)

    async def enqueue_many(self, tasks: Sequence[NewTask], *, request: Optional[str] = None) -> List[Outcome]:
        """Submits many tasks in one request."""
        return await asyncio.to_thread(self.sync.enqueue_many, tasks, request=request)

    async def task(self, id: str, *, stale: bool = False) -> Task:
        """One task as it stands."""
        return await asyncio.to_thread(self.sync.task, id, stale=stale)

    def handle(self, id: str) -> Handle:
        """A handle to a task that was submitted before; its `result_async` is for awaiting."""
        return self.sync.handle(id)

    async def result(self, id: str, timeout_s: Optional[float] = None) -> Any:
        """Waits for a task's result."""
        return await self.sync.handle(id).result_async(timeout_s)

    def tasks(self, *, queue: Optional[str] = None, state: Optional[str] = None, worker: Optional[str] = None, find: Optional[str] = None) -> AsyncIterator[Task]:
        """All tasks that fit, page by page."""
        return _each(lambda: self.sync.tasks(queue=queue, state=state, worker=worker, find=find))

    async def cancel(self, id: str) -> Outcome:
        """Cancels a task that is not finished."""
        return await asyncio.to_thread(self.sync.cancel, id)

    async def retry(self, id: str) -> Outcome:
        """Gives a dead or cancelled task fresh attempts."""
        return await asyncio.to_thread(self.sync.retry, id)

    async def explain(self, id: str) -> List[Dict[str, Any]]:
        """Why a task is not running."""
        return await asyncio.to_thread(self.sync.explain, id)

    async def request_outcome(self, request: str, item: int = 0) -> Dict[str, Any]:
        """What became of a request id."""
        return await asyncio.to_thread(self.sync.request_outcome, request, item)

    # A worker's side

    async def claim(self, worker: str, queues: Sequence[str], *, count: int = 1, wait_s: float = 0.0, session: int = 0,
                    labels: Optional[Mapping[str, str]] = None) -> List[ClaimedTask]:
        """Takes up to `count` ready tasks, waiting up to `wait_s` for some."""
        return await asyncio.to_thread(self.sync.claim, worker, queues, count=count, wait_s=wait_s, session=session, labels=labels)

    async def complete(self, worker: str, task: ClaimedTask, result: Any = None, *, then: Sequence[NewTask] = (),
                       outputs: Sequence[Mapping[str, Any]] = ()) -> Outcome:
        """Settles a claimed task as done."""
        return await asyncio.to_thread(self.sync.complete, worker, task, result, then=then, outputs=outputs)

    async def fail(self, worker: str, task: ClaimedTask, error: str, *, retry: bool = True, delay_s: Optional[float] = None) -> Outcome:
        """Ends an attempt as failed."""
        return await asyncio.to_thread(self.sync.fail, worker, task, error, retry=retry, delay_s=delay_s)

    async def keep_checkpoint(self, worker: str, task: ClaimedTask, data: bytes) -> None:
        """Keeps how far an attempt has come, for the next one."""
        await asyncio.to_thread(self.sync.keep_checkpoint, worker, task, data)

    async def last_checkpoint(self, task: ClaimedTask) -> Optional[bytes]:
        """What the last attempt kept."""
        return await asyncio.to_thread(self.sync.last_checkpoint, task)

    async def renew(self, worker: str, tasks: Sequence[ClaimedTask], *, session: Optional[int] = None, progress: Optional[Mapping[str, Dict[str, Any]]] = None,
                    timeout_s: Optional[float] = None) -> List[Outcome]:
        """Keeps claims alive, and says how far they are."""
        return await asyncio.to_thread(self.sync.renew, worker, tasks, session=session, progress=progress, timeout_s=timeout_s)

    async def upload(self, data: bytes) -> Dict[str, Any]:
        """Stores bytes that have no name yet."""
        return await asyncio.to_thread(self.sync.upload, data)

    async def read_input(self, source: Mapping[str, Any]) -> bytes:
        """The bytes of an input, as a claim tells it."""
        return await asyncio.to_thread(self.sync.read_input, source)

    async def beat(self, worker: str, *, session: int, slots: int, busy: int = 0, labels: Optional[Mapping[str, str]] = None,
                   queues: Sequence[str] = (), leaving: bool = False, timeout_s: float = 5.0) -> Dict[str, Any]:
        """Says that a worker lives; tells what is wanted of it."""
        return await asyncio.to_thread(self.sync.beat, worker, session=session, slots=slots, busy=busy, labels=labels, queues=queues, leaving=leaving, timeout_s=timeout_s)

    async def workers(self) -> List[Dict[str, Any]]:
        """All workers with their slots, labels and state."""
        return await asyncio.to_thread(self.sync.workers)

    async def drain_worker(self, worker: str) -> None:
        """Lets a worker finish what it has and leave."""
        await asyncio.to_thread(self.sync.drain_worker, worker)

    # Queues

    async def queues(self) -> List[Dict[str, Any]]:
        """Every queue with settings, counts and health."""
        return await asyncio.to_thread(self.sync.queues)

    async def queue(self, name: str) -> Dict[str, Any]:
        """One queue with settings, counts and health."""
        return await asyncio.to_thread(self.sync.queue, name)

    async def set_queue(self, name: str, **settings: Any) -> Dict[str, Any]:
        """Changes the settings that are named."""
        return await asyncio.to_thread(self.sync.set_queue, name, **settings)

    async def pause_queue(self, name: str) -> None:
        """Holds a queue's tasks back."""
        await asyncio.to_thread(self.sync.pause_queue, name)

    async def resume_queue(self, name: str) -> None:
        """Hands a queue's tasks out again."""
        await asyncio.to_thread(self.sync.resume_queue, name)

    # Schedules

    def schedules(self) -> AsyncIterator[Dict[str, Any]]:
        """All schedules in order of their names, page by page."""
        return _each(self.sync.schedules)

    async def schedule(self, name: str) -> Dict[str, Any]:
        """One schedule with its last and next instants, and what was missed."""
        return await asyncio.to_thread(self.sync.schedule, name)

    async def set_schedule(self, name: str, task: NewTask, **settings: Any) -> Dict[str, Any]:
        """Makes a schedule or replaces it as a whole."""
        return await asyncio.to_thread(self.sync.set_schedule, name, task, **settings)

    async def pause_schedule(self, name: str) -> None:
        """Lets a schedule rest."""
        await asyncio.to_thread(self.sync.pause_schedule, name)

    async def resume_schedule(self, name: str) -> None:
        """Lets a schedule go on, from now."""
        await asyncio.to_thread(self.sync.resume_schedule, name)

    async def delete_schedule(self, name: str) -> None:
        """Removes a schedule; the tasks it submitted stay."""
        await asyncio.to_thread(self.sync.delete_schedule, name)

    # Leases

    def lease(self, name: str, *, holder: Optional[str] = None, ttl_s: float = 15.0, wait_s: Optional[float] = None) -> "AsyncLease":
        """A lock for an `async with` block."""
        return AsyncLease(self.sync.lease(name, holder=holder, ttl_s=ttl_s, wait_s=wait_s))

    # Objects

    async def push_handler(self, name: str) -> None:
        """Lets jobs and tasks name a program that is a function of its workers."""
        await asyncio.to_thread(self.sync.push_handler, name)

    async def put_object(self, bucket: str, key: str, data: Union[bytes, BinaryIO], *, content_type: str = "application/octet-stream",
                         only_new: bool = False) -> ObjectInfo:
        """Stores an object."""
        return await asyncio.to_thread(self.sync.put_object, bucket, key, data, content_type=content_type, only_new=only_new)

    async def get_object(self, bucket: str, key: str, *, version: Optional[int] = None) -> bytes:
        """The bytes of an object."""
        return await asyncio.to_thread(self.sync.get_object, bucket, key, version=version)

    async def save_object(self, bucket: str, key: str, to: Union[str, "os.PathLike[str]", BinaryIO], *, version: Optional[int] = None) -> int:
        """Writes an object into a file as its bytes come."""
        return await asyncio.to_thread(self.sync.save_object, bucket, key, to, version=version)

    def objects(self, bucket: str, *, prefix: Optional[str] = None) -> AsyncIterator[ObjectInfo]:
        """Objects in order of their names."""
        return _each(lambda: self.sync.objects(bucket, prefix=prefix))

    async def delete_object(self, bucket: str, key: str) -> None:
        """Removes an object."""
        await asyncio.to_thread(self.sync.delete_object, bucket, key)


class AsyncJobs:
    """The part of a client that is about jobs: `client.jobs`."""

    def __init__(self, sync: Jobs):
        self.sync = sync

    async def submit(self, job: Mapping[str, Json], *, request: Optional[str] = None) -> Job:
        """Submits a job: all its tasks, or none."""
        return await asyncio.to_thread(self.sync.submit, job, request=request)

    async def show(self, id: str) -> Job:
        """Where a job stands."""
        return await asyncio.to_thread(self.sync.show, id)

    def list(self) -> AsyncIterator[Job]:
        """All jobs in order of their ids."""
        return _each(self.sync.list)

    async def cancel(self, id: str) -> Job:
        """Ends a job with all its tasks."""
        return await asyncio.to_thread(self.sync.cancel, id)

    async def wait(self, id: str, timeout_s: Optional[float] = None) -> Job:
        """Waits until a job has ended; looks now and then, so that no thread is held."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pause_s = _LOOK_FIRST_S
        while True:
            job = await self.show(id)
            if job.is_finished:
                return job
            left_s = pause_s if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"job {id} is still {job.status} after {timeout_s} s", code="timed_out")
            await asyncio.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, _LOOK_MAX_S)

    async def result(self, id: str, timeout_s: Optional[float] = None) -> JobResult:
        """Waits for the result. Raises `TaskFailed` if the job ended in error or was cancelled."""
        await self.wait(id, timeout_s)
        return await asyncio.to_thread(self.sync.result, id)


class AsyncLease:
    """A lease as an `async with` block. Renewed by a thread of its own, so that a busy loop cannot lose it."""

    def __init__(self, sync: Lease):
        self.sync = sync

    @property
    def fence(self) -> int:
        """Rises with every holder: hand it to whatever the lease protects."""
        return self.sync.fence

    @property
    def is_lost(self) -> bool:
        """Whether the lease could not be kept."""
        return self.sync.lost.is_set()

    def check(self) -> None:
        """Raises `ClaimLost` if the lease could not be kept."""
        self.sync.check()

    async def __aenter__(self) -> "AsyncLease":
        await asyncio.to_thread(self.sync.__enter__)
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]) -> None:
        await asyncio.to_thread(self.sync.__exit__, kind, error, where)


async def _each(begin: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
    """Walks an iterator whose steps may wait for the network."""
    walk = begin()
    while True:
        found = await asyncio.to_thread(next, walk, _END)
        if found is _END:
            return
        yield found  # type: ignore[misc]
