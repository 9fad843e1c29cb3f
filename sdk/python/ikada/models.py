"""Tasks and objects as values."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

Json = Any


@dataclass(frozen=True)
class NewTask:
    """A task to submit. What is None comes from the queue's settings. `payload` is any JSON value, or bytes."""

    payload: Any = None
    queue: Optional[str] = None
    id: Optional[str] = None
    key: Optional[str] = None
    key_limit: Optional[int] = None
    priority: Optional[int] = None
    delay_s: Optional[float] = None
    run_at_ms: Optional[int] = None
    max_attempts: Optional[int] = None
    ttl_s: Optional[float] = None
    timeout_s: Optional[float] = None
    deadline_in_s: Optional[float] = None
    retention_s: Optional[float] = None
    backoff_s: Optional["tuple[float, float]"] = None
    labels: Mapping[str, str] = field(default_factory=dict)
    then: "tuple[NewTask, ...]" = ()

    def body(self) -> Dict[str, Json]:
        """The task as the API wants it."""
        plain = {"queue": self.queue, "id": self.id, "key": self.key, "key_limit": self.key_limit, "priority": self.priority,
                 "run_at_ms": self.run_at_ms, "max_attempts": self.max_attempts}
        body: Dict[str, Json] = {name: value for name, value in plain.items() if value is not None}
        times = {"delay_ms": self.delay_s, "ttl_ms": self.ttl_s, "timeout_ms": self.timeout_s, "deadline_in_ms": self.deadline_in_s,
                 "retention_ms": self.retention_s}
        body.update({name: to_ms(value) for name, value in times.items() if value is not None})
        if self.backoff_s is not None:
            body["backoff"] = {"base_ms": to_ms(self.backoff_s[0]), "cap_ms": to_ms(self.backoff_s[1])}
        if self.labels:
            body["labels"] = dict(self.labels)
        if self.then:
            body["then"] = [task.body() for task in self.then]
        put_value(body, "payload", self.payload)
        return body


def to_ms(seconds: float) -> int:
    """Whole milliseconds."""
    return max(0, round(seconds * 1000))


def put_value(body: Dict[str, Json], name: str, value: Any) -> None:
    """Stores a JSON value, or bytes as base64, under the name that fits. None is none."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        body[f"{name}_base64"] = base64.b64encode(bytes(value)).decode("ascii")
    elif value is not None:
        body[name] = value


def take_value(body: Mapping[str, Json], name: str) -> Any:
    """The JSON value, or the bytes, under a name; None if there is neither."""
    if name in body:
        return body[name]
    text = body.get(f"{name}_base64")
    return None if text is None else base64.b64decode(text)


@dataclass(frozen=True)
class Attempt:
    """One attempt at a task."""

    fence: int
    worker: str
    outcome: str
    started_ms: int
    ended_ms: Optional[int]
    error: Optional[str]


@dataclass(frozen=True)
class Task:
    """A task as it stands. `raw` is the whole document."""

    id: str
    queue: str
    state: str
    payload: Any
    result: Any
    attempts_begun: int
    max_attempts: int
    attempts: List[Attempt]
    dead_reason: Optional[str]
    raw: Dict[str, Json]

    @property
    def is_finished(self) -> bool:
        """Whether nothing happens to it any more by itself."""
        return self.state in ("done", "dead", "cancelled")

    @property
    def progress(self) -> Optional[Tuple[float, str]]:
        """How far the running attempt is, from 0 to 1, and its words; None if its worker does not say."""
        said: Any = self.raw.get("progress")
        return (said["permille"] / 1000, said.get("note", "")) if said else None

    @staticmethod
    def read(body: Dict[str, Json]) -> "Task":
        """Reads the document of a task."""
        attempts = [Attempt(int(one["fence"]), one["worker"], one["outcome"], one["started_ms"], one.get("ended_ms"), one.get("error"))
                    for one in body.get("attempts", [])]
        return Task(body["id"], body["queue"], body["state"], take_value(body, "payload"), take_value(body, "result"),
                    body["attempts_begun"], body["max_attempts"], attempts, body.get("dead_reason"), body)


@dataclass(frozen=True)
class ClaimedTask:
    """A task handed to a worker. Its fence only rises from attempt to attempt: pass it to outside systems."""

    id: str
    queue: str
    fence: int
    attempt: int
    max_attempts: int
    ttl_s: float
    timeout_s: Optional[float]
    payload: Any
    has_checkpoint: bool = False
    traceparent: Optional[str] = None
    work: Optional[Mapping[str, Json]] = None

    @staticmethod
    def read(body: Mapping[str, Json]) -> "ClaimedTask":
        """Reads one item of a claim's answer."""
        timeout_ms = body.get("timeout_ms")
        return ClaimedTask(body["id"], body["queue"], int(body["fence"]), body["attempt"], body["max_attempts"], body["ttl_ms"] / 1000,
                           None if timeout_ms is None else timeout_ms / 1000, take_value(body, "payload"), bool(body.get("checkpoint", False)),
                           body.get("traceparent"), body.get("work"))


@dataclass(frozen=True)
class Outcome:
    """What became of one item of a request."""

    id: str
    outcome: str
    lsn: Optional[str]
    problem: Optional[Dict[str, Json]]

    @property
    def is_settled(self) -> bool:
        """Whether sending it again cannot change it."""
        return self.outcome not in ("unknown", "unavailable")

    @staticmethod
    def read(body: Mapping[str, Json]) -> "Outcome":
        """Reads one outcome."""
        return Outcome(body["id"], body["outcome"], body.get("lsn"), body.get("problem"))


@dataclass(frozen=True)
class ObjectInfo:
    """One version of an object."""

    bucket: str
    key: str
    version: int
    size: int
    digest: str
    content_type: str
    modified_ms: int

    @staticmethod
    def read(body: Mapping[str, Json]) -> "ObjectInfo":
        """Reads the document of an object."""
        return ObjectInfo(body["bucket"], body["key"], int(body["version"]), body["size"], body["digest"], body["content_type"], body["modified_ms"])


def encode(body: Json) -> bytes:
    """JSON bytes; refuses what JSON cannot say (such as NaN) before anything is sent."""
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode("utf-8")
