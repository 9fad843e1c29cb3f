"""Jobs: submitted, followed, and what they came to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional
from urllib.parse import quote

from .errors import TaskFailed, TimedOut
from .models import Json, ObjectInfo, take_value
from .transport import Transport

_LOOK_S = 10.0


@dataclass(frozen=True)
class Job:
    """A job as it stands. `raw` is the whole document, with its stages."""

    id: str
    status: str
    tasks_done: int
    tasks_total: int
    reason: Optional[str]
    revision: int
    raw: Dict[str, Json]

    @property
    def is_finished(self) -> bool:
        """Whether nothing can happen to it any more."""
        return self.status in ("done", "error", "cancelled")

    @staticmethod
    def read(body: Dict[str, Json]) -> "Job":
        """Reads the document of a job."""
        return Job(body["id"], body["status"], body["tasks_done"], body["tasks_total"], body.get("reason"), body["revision"], body)


@dataclass(frozen=True)
class JobResult:
    """What a job came to: the result of its last task, and what its last stage stored in the bucket `jobs`."""

    status: str
    result: Any
    outputs: List[ObjectInfo]


class Jobs:
    """The part of a client that is about jobs: `client.jobs`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def submit(self, job: Mapping[str, Json], *, request: Optional[str] = None) -> Job:
        """Submits a job: all its tasks, or none. Fields are those of `POST /v1/jobs`; under the same `request` it happens once."""
        return Job.read(self._transport.call("POST", "/v1/jobs", body=dict(job), keyed=True, request=request).json())

    def show(self, id: str) -> Job:
        """Where a job stands."""
        return Job.read(self._transport.call("GET", _path(id)).json())

    def list(self) -> Iterator[Job]:
        """All jobs in order of their ids."""
        after: Optional[str] = None
        while True:
            page = self._transport.call("GET", "/v1/jobs", query={"after": after}).json()
            yield from (Job.read(one) for one in page["jobs"])
            after = page.get("next")
            if after is None:
                return

    def cancel(self, id: str) -> Job:
        """Ends a job with all its tasks."""
        return Job.read(self._transport.call("POST", f"{_path(id)}/cancel", keyed=True).json())

    def wait(self, id: str, timeout_s: Optional[float] = None) -> Job:
        """Waits until a job has ended. The node tells of changes; nothing is polled."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        job = self.show(id)
        while not job.is_finished:
            left_s = _LOOK_S if deadline is None else min(_LOOK_S, deadline - time.monotonic())
            if left_s <= 0:
                raise TimedOut(f"job {id} is still {job.status} after {timeout_s} s", code="timed_out")
            query = {"after": job.revision, "wait_ms": int(left_s * 1000)}
            job = Job.read(self._transport.call("GET", f"{_path(id)}/events", query=query, wait_s=left_s).json())
        return job

    def result(self, id: str, timeout_s: Optional[float] = None) -> JobResult:
        """Waits for the result. Raises `TaskFailed` if the job ended in error or was cancelled."""
        job = self.wait(id, timeout_s)
        if job.status != "done":
            raise TaskFailed(f"job {id} is {job.status}: {job.reason or 'no reason was given'}", code=job.status)
        body = page = self._transport.call("GET", f"{_path(id)}/result").json()
        outputs = [ObjectInfo.read(one) for one in page.get("outputs", [])]
        while page.get("next") is not None:
            page = self._transport.call("GET", f"{_path(id)}/result", query={"after": page["next"]}).json()
            outputs += (ObjectInfo.read(one) for one in page.get("outputs", []))
        return JobResult(body["status"], take_value(body, "result"), outputs)


def _path(id: str) -> str:
    return f"/v1/jobs/{quote(id, safe='')}"
