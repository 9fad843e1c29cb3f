"""The client: submit and look at tasks, run queues, store objects. One client serves many threads."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote

from .errors import from_problem
from .handle import Handle
from .jobs import Jobs
from .lease import Lease
from .models import ClaimedTask, NewTask, ObjectInfo, Outcome, Task, put_value, to_ms
from .transport import Transport

Urls = Union[str, List[str]]


def _name(text: str) -> str:
    return quote(text, safe="")


class Client:
    """A cluster, through any of its nodes.

    `urls` names one or more client addresses; IKADA_URL when absent. `token` is the text of a token; without it IKADA_TOKEN, or the
    file named by IKADA_TOKEN_FILE. `timeout_s` bounds each call, resends included.
    """

    def __init__(self, urls: Optional[Urls] = None, *, token: Optional[str] = None, namespace: Optional[str] = None,
                 timeout_s: float = 30.0, ca_file: Optional[str] = None):
        urls = urls or os.environ.get("IKADA_URL") or "http://127.0.0.1:7400"
        self._transport = Transport(urls, token=token or _token(), namespace=namespace, timeout_s=timeout_s, ca_file=ca_file)
        self.jobs = Jobs(self._transport)

    def close(self) -> None:
        """Closes idle connections; the client can be used again."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Tasks

    def enqueue(self, task: Optional[NewTask] = None, *, request: Optional[str] = None, **settings: Any) -> Handle:
        """Submits one task: `enqueue(NewTask(..))` or `enqueue(queue="mail", payload={..})`. Under the same `request` it happens once."""
        body = (task or NewTask(**settings)).body()
        answer = self._transport.call("POST", "/v1/tasks", body=body, keyed=True, request=request).json()
        return Handle(self, answer["tasks"][0]["id"])

    def enqueue_many(self, tasks: Sequence[NewTask], *, request: Optional[str] = None) -> List[Outcome]:
        """Submits many tasks in one request; each has an outcome of its own, in the order given."""
        body = {"tasks": [task.body() for task in tasks]}
        answer = self._transport.call("POST", "/v1/tasks", body=body, keyed=True, request=request).json()
        return [Outcome.read(one) for one in answer["tasks"]]

    def task(self, id: str, *, stale: bool = False) -> Task:
        """One task as it stands."""
        query = {"consistency": "stale"} if stale else None
        return Task.read(self._transport.call("GET", f"/v1/tasks/{_name(id)}", query=query).json())

    def handle(self, id: str) -> Handle:
        """A handle to a task that was submitted before."""
        return Handle(self, id)

    def tasks(self, *, queue: Optional[str] = None, state: Optional[str] = None, worker: Optional[str] = None, find: Optional[str] = None) -> Iterator[Task]:
        """All tasks that fit, page by page, in no particular order. `worker` is whose attempt is the newest, `find` a part of the id."""
        after: Optional[str] = None
        while True:
            query = {"queue": queue, "state": state, "worker": worker, "find": find, "after": after}
            page = self._transport.call("GET", "/v1/tasks", query=query).json()
            yield from (Task.read(one) for one in page["tasks"])
            after = page.get("next")
            if after is None:
                return

    def cancel(self, id: str) -> Outcome:
        """Cancels a task that is not finished."""
        return Outcome.read(self._transport.call("POST", f"/v1/tasks/{_name(id)}/cancel", keyed=True).json())

    def retry(self, id: str) -> Outcome:
        """Gives a dead or cancelled task fresh attempts."""
        return Outcome.read(self._transport.call("POST", f"/v1/tasks/{_name(id)}/retry", keyed=True).json())

    def explain(self, id: str) -> List[Dict[str, Any]]:
        """Why a task is not running: the reasons that hold, each with `code` and `sentence`."""
        reasons: List[Dict[str, Any]] = self._transport.call("GET", f"/v1/tasks/{_name(id)}/explain").json()["reasons"]
        return reasons

    def request_outcome(self, request: str, item: int = 0) -> Dict[str, Any]:
        """What became of a request id: `status` is `committed`, `not_yet` or `voided`."""
        found: Dict[str, Any] = self._transport.call("GET", f"/v1/requests/{_name(request)}", query={"item": item}).json()
        return found

    # A worker's side

    def claim(self, worker: str, queues: Sequence[str], *, count: int = 1, wait_s: float = 0.0, session: int = 0,
              labels: Optional[Mapping[str, str]] = None) -> List[ClaimedTask]:
        """Takes up to `count` ready tasks, waiting up to `wait_s` for some."""
        body = {"worker": worker, "queues": list(queues), "count_max": count, "wait_ms": to_ms(wait_s), "session": str(session), "labels": dict(labels or {})}
        answer = self._transport.call("POST", "/v1/tasks/claim", body=body, keyed=True, wait_s=wait_s).json()
        return [ClaimedTask.read(one) for one in answer["tasks"]]

    def upload(self, data: bytes) -> Dict[str, Any]:
        """Stores bytes that have no name yet: `size`, `digest` and `chunks`. They get one as an output of a completion, or go after an hour."""
        stored: Dict[str, Any] = self._transport.call("POST", "/v1/uploads", raw=data, headers={"Content-Type": "application/octet-stream"}).json()
        return stored

    def read_input(self, source: Mapping[str, Any]) -> bytes:
        """The bytes of an input, as a claim tells it: an object or a text. Addresses are opened by `ikada worker` alone."""
        if "text" in source:
            return str(source["text"]).encode("utf-8")
        if "bucket" not in source:
            raise ValueError(f"input {source.get('name')!r} is an address, which handlers do not open")
        offset, length = int(source.get("offset", 0)), source.get("length")
        if length == 0:
            return b""
        headers = {"If-Match": f'"{source["digest"]}"'} if "digest" in source else {}
        if offset or length is not None:
            headers["Range"] = f"bytes={offset}-{'' if length is None else offset + int(length) - 1}"
        query = {"version": source.get("version")}
        return self._transport.call("GET", _object(source["bucket"], source["key"]), query=query, headers=headers).body

    def complete(self, worker: str, task: ClaimedTask, result: Any = None, *, then: Sequence[NewTask] = (),
                 outputs: Sequence[Mapping[str, Any]] = ()) -> Outcome:
        """Settles a claimed task as done; `then` is submitted in the same step. Safe to repeat: the fence tells attempts apart.

        `outputs` are uploads with a `name` each; they can be read from this step on, and only if it counts.
        """
        item: Dict[str, Any] = {"id": task.id, "fence": str(task.fence)}
        put_value(item, "result", result)
        if then:
            item["then"] = [one.body() for one in then]
        if outputs:
            item["outputs"] = [dict(one) for one in outputs]
        return self._settle("/v1/tasks/complete", worker, item)

    def fail(self, worker: str, task: ClaimedTask, error: str, *, retry: bool = True, delay_s: Optional[float] = None) -> Outcome:
        """Ends an attempt as failed."""
        item: Dict[str, Any] = {"id": task.id, "fence": str(task.fence), "error": error, "retry": retry}
        if delay_s is not None:
            item["delay_ms"] = to_ms(delay_s)
        return self._settle("/v1/tasks/fail", worker, item)

    def _settle(self, path: str, worker: str, item: Dict[str, Any]) -> Outcome:
        answer = self._transport.call("POST", path, body={"worker": worker, "tasks": [item]}).json()
        outcome = Outcome.read(answer["tasks"][0])
        if outcome.problem is not None:
            raise from_problem(int(outcome.problem.get("status", 500)), outcome.problem)
        return outcome

    def keep_checkpoint(self, worker: str, task: ClaimedTask, data: bytes) -> None:
        """Keeps how far an attempt has come, for the next one. Refused once another attempt has taken over."""
        stored = self.upload(data)
        body = {"worker": worker, "fence": str(task.fence), "size": stored["size"], "digest": stored["digest"], "chunks": stored["chunks"]}
        self._transport.call("POST", f"/v1/tasks/{_name(task.id)}/checkpoint", body=body)

    def last_checkpoint(self, task: ClaimedTask) -> Optional[bytes]:
        """What the last attempt kept; None if none did."""
        return self.get_object("tasks", f"{task.id}/.checkpoint") if task.has_checkpoint else None

    def renew(self, worker: str, tasks: Sequence[ClaimedTask], *, session: Optional[int] = None, progress: Optional[Mapping[str, Dict[str, Any]]] = None,
              timeout_s: Optional[float] = None) -> List[Outcome]:
        """Keeps claims alive. With `session` the list says that these are all the claims of that process run. `progress` has `permille` and `note` by task."""
        said = progress or {}
        items: List[Dict[str, Any]] = [{"id": one.id, "fence": str(one.fence), **({"progress": said[one.id]} if one.id in said else {})} for one in tasks]
        body: Dict[str, Any] = {"worker": worker, "tasks": items}
        if session is not None:
            body["session"] = str(session)
        answer = self._transport.call("POST", "/v1/tasks/renew", body=body, timeout_s=timeout_s).json()
        return [Outcome.read(one) for one in answer["tasks"]]

    def beat(self, worker: str, *, session: int, slots: int, busy: int = 0, labels: Optional[Mapping[str, str]] = None, queues: Sequence[str] = (),
             leaving: bool = False, timeout_s: float = 5.0) -> Dict[str, Any]:
        """Says that a worker lives; tells what is `wanted` of it (`work`, `drain`, `stop`) and in how many `beat_ms` to come back."""
        body: Dict[str, Any] = {"session": str(session), "slots": slots, "busy": busy, "labels": dict(labels or {}), "queues": list(queues), "version": "python", "leaving": leaving}
        orders: Dict[str, Any] = self._transport.call("PUT", f"/v1/workers/{_name(worker)}", body=body, timeout_s=timeout_s).json()
        return orders

    def workers(self) -> List[Dict[str, Any]]:
        """All workers with their slots, labels and state."""
        found: List[Dict[str, Any]] = self._transport.call("GET", "/v1/workers").json()["workers"]
        return found

    def drain_worker(self, worker: str) -> None:
        """Lets a worker finish what it has and leave."""
        self._transport.call("POST", f"/v1/workers/{_name(worker)}/drain", keyed=True)

    # Queues

    def queues(self) -> List[Dict[str, Any]]:
        """Every queue with settings, counts and health."""
        found: List[Dict[str, Any]] = self._transport.call("GET", "/v1/queues").json()["queues"]
        return found

    def queue(self, name: str) -> Dict[str, Any]:
        """One queue with settings, counts and health."""
        found: Dict[str, Any] = self._transport.call("GET", f"/v1/queues/{_name(name)}").json()
        return found

    def set_queue(self, name: str, **settings: Any) -> Dict[str, Any]:
        """Changes the settings that are named, such as `max_attempts=3`; names are those of the HTTP API."""
        found: Dict[str, Any] = self._transport.call("PUT", f"/v1/queues/{_name(name)}", body=settings, keyed=True).json()
        return found

    def pause_queue(self, name: str) -> None:
        """Holds a queue's tasks back."""
        self._transport.call("POST", f"/v1/queues/{_name(name)}/pause", keyed=True)

    def resume_queue(self, name: str) -> None:
        """Hands a queue's tasks out again."""
        self._transport.call("POST", f"/v1/queues/{_name(name)}/resume", keyed=True)

    # Schedules

    def schedules(self) -> Iterator[Dict[str, Any]]:
        """All schedules in order of their names, page by page, without payloads and follow-ups."""
        after: Optional[str] = None
        while True:
            page = self._transport.call("GET", "/v1/schedules", query={"after": after}).json()
            yield from page["schedules"]
            after = page.get("next")
            if after is None:
                return

    def schedule(self, name: str) -> Dict[str, Any]:
        """One schedule with its last and next instants, and what was missed."""
        found: Dict[str, Any] = self._transport.call("GET", f"/v1/schedules/{_name(name)}").json()
        return found

    def set_schedule(self, name: str, task: NewTask, **settings: Any) -> Dict[str, Any]:
        """Makes a schedule or replaces it as a whole: `cron="30 2 * * *"` and `zone`, or `every_ms`; names are those of the HTTP API."""
        body = {**settings, "task": task.body()}
        found: Dict[str, Any] = self._transport.call("PUT", f"/v1/schedules/{_name(name)}", body=body, keyed=True).json()
        return found

    def pause_schedule(self, name: str) -> None:
        """Lets a schedule rest; instants that pass meanwhile do not count."""
        self._transport.call("POST", f"/v1/schedules/{_name(name)}/pause", keyed=True)

    def resume_schedule(self, name: str) -> None:
        """Lets a schedule go on, from now."""
        self._transport.call("POST", f"/v1/schedules/{_name(name)}/resume", keyed=True)

    def delete_schedule(self, name: str) -> None:
        """Removes a schedule; the tasks it submitted stay."""
        self._transport.call("DELETE", f"/v1/schedules/{_name(name)}", keyed=True)

    # Leases

    def lease(self, name: str, *, holder: Optional[str] = None, ttl_s: float = 15.0, wait_s: Optional[float] = None) -> Lease:
        """A lock for a `with` block: `with client.lease("nightly") as lease: ..`. Waits for its turn, or up to `wait_s`."""
        return Lease(self._transport, name, holder=holder, ttl_s=ttl_s, wait_s=wait_s)

    # Objects

    def push_handler(self, name: str) -> None:
        """Lets jobs and tasks name a program that is a function of its workers (`App.program`)."""
        self._transport.call("POST", "/v1/programs", body={"name": name, "kind": "handler"}, keyed=True)

    def put_object(self, bucket: str, key: str, data: Union[bytes, BinaryIO], *, content_type: str = "application/octet-stream",
                   only_new: bool = False) -> ObjectInfo:
        """Stores bytes, or a file as it is read, under a name. `only_new` refuses to replace. Bytes are sent again after trouble, a file is not."""
        headers = {"Content-Type": content_type}
        if only_new:
            headers["If-None-Match"] = "*"
        return ObjectInfo.read(self._transport.call("PUT", _object(bucket, key), raw=data, headers=headers).json())

    def get_object(self, bucket: str, key: str, *, version: Optional[int] = None) -> bytes:
        """The bytes of an object."""
        return self._transport.call("GET", _object(bucket, key), query={"version": version}).body

    def save_object(self, bucket: str, key: str, to: Union[str, "os.PathLike[str]", BinaryIO], *, version: Optional[int] = None) -> int:
        """Writes an object into a file as its bytes come, and tells how many there were: for what does not fit into memory.

        A path gets its file only when all is there. What breaks off is gone on with at another node; `timeout_s` of the client is the
        longest silence.
        """
        query = {"version": version}
        if not isinstance(to, (str, os.PathLike)):
            return self._transport.save(_object(bucket, key), query=query, sink=to)
        part = f"{os.fspath(to)}.part"
        try:
            with open(part, "wb") as file:
                size = self._transport.save(_object(bucket, key), query=query, sink=file)
            os.replace(part, to)
        except BaseException:
            if os.path.exists(part):
                os.remove(part)
            raise
        return size

    def objects(self, bucket: str, *, prefix: Optional[str] = None) -> Iterator[ObjectInfo]:
        """Objects in order of their names."""
        after: Optional[str] = None
        while True:
            query = {"prefix": prefix, "after": after}
            page = self._transport.call("GET", f"/v1/objects/{_name(bucket)}", query=query).json()
            yield from (ObjectInfo.read(one) for one in page["objects"])
            after = page.get("next")
            if after is None:
                return

    def delete_object(self, bucket: str, key: str) -> None:
        """Removes an object with all its versions."""
        self._transport.call("DELETE", _object(bucket, key), keyed=True)


def _object(bucket: str, key: str) -> str:
    return f"/v1/objects/{_name(bucket)}/{quote(key, safe='/')}"


def _token() -> Optional[str]:
    if os.environ.get("IKADA_TOKEN"):
        return os.environ["IKADA_TOKEN"]
    path = os.environ.get("IKADA_TOKEN_FILE")
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()
