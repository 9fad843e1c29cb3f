"""The client for asyncio: the same calls, awaited. Each runs in a thread of the default pool; waits hold no thread."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, BinaryIO, Callable, Dict, Iterator, List, Optional, Sequence, TypeVar, Union

from .client import Client, Urls
from .handle import Handle
from .models import NewTask, ObjectInfo, Outcome, Task

T = TypeVar("T")
_END = object()


class AsyncClient:
    """A cluster, for asyncio. Takes what `Client` takes."""

    def __init__(self, urls: Optional[Urls] = None, **settings: Any):
        self.sync = Client(urls, **settings)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.sync.close()

    async def enqueue(self, task: Optional[NewTask] = None, *, request: Optional[str] = None, **settings: Any) -> Handle:
        """Submits one task."""
        return await asyncio.to_thread(self.sync.enqueue, task, request=request, **settings)

    async def enqueue_many(self, tasks: Sequence[NewTask], *, request: Optional[str] = None) -> List[Outcome]:
        """Submits many tasks in one request."""
        return await asyncio.to_thread(self.sync.enqueue_many, tasks, request=request)

    async def task(self, id: str) -> Task:
        """One task as it stands."""
        return await asyncio.to_thread(self.sync.task, id)

    async def result(self, id: str, timeout_s: Optional[float] = None) -> Any:
        """Waits for a task's result."""
        return await self.sync.handle(id).result_async(timeout_s)

    async def cancel(self, id: str) -> Outcome:
        """Cancels a task that is not finished."""
        return await asyncio.to_thread(self.sync.cancel, id)

    async def retry(self, id: str) -> Outcome:
        """Gives a dead or cancelled task fresh attempts."""
        return await asyncio.to_thread(self.sync.retry, id)

    async def queue(self, name: str) -> Dict[str, Any]:
        """One queue with settings, counts and health."""
        return await asyncio.to_thread(self.sync.queue, name)

    def tasks(self, *, queue: Optional[str] = None, state: Optional[str] = None) -> AsyncIterator[Task]:
        """All tasks that fit, page by page."""
        return _each(lambda: self.sync.tasks(queue=queue, state=state))

    def objects(self, bucket: str, *, prefix: Optional[str] = None) -> AsyncIterator[ObjectInfo]:
        """Objects in order of their names."""
        return _each(lambda: self.sync.objects(bucket, prefix=prefix))

    async def put_object(self, bucket: str, key: str, data: Union[bytes, BinaryIO], **settings: Any) -> ObjectInfo:
        """Stores an object."""
        return await asyncio.to_thread(self.sync.put_object, bucket, key, data, **settings)

    async def get_object(self, bucket: str, key: str, *, version: Optional[int] = None) -> bytes:
        """The bytes of an object."""
        return await asyncio.to_thread(self.sync.get_object, bucket, key, version=version)

    async def delete_object(self, bucket: str, key: str) -> None:
        """Removes an object."""
        await asyncio.to_thread(self.sync.delete_object, bucket, key)


async def _each(begin: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
    """Walks an iterator whose steps may wait for the network."""
    walk = begin()
    while True:
        found = await asyncio.to_thread(next, walk, _END)
        if found is _END:
            return
        yield found  # type: ignore[misc]
