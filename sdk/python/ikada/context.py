"""What a handler can know about the attempt that runs it."""

from __future__ import annotations

import contextvars
import logging
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from .errors import ClaimLost
from .models import ClaimedTask, NewTask

if TYPE_CHECKING:
    from .client import Client

log = logging.getLogger("ikada.worker")

# What a node keeps of a note, in bytes; it cuts there itself, and what is much longer would only burden every renewal.
_NOTE_CHARS_MAX = 256

_CURRENT: "contextvars.ContextVar[TaskContext]" = contextvars.ContextVar("ikada_task")


class TaskContext:
    """One attempt. `lost` is set when its result cannot count any more; `stopping` when the worker was asked to end."""

    def __init__(self, task: ClaimedTask, stopping: threading.Event, *, client: "Optional[Client]" = None, worker: str = ""):
        self.task = task
        self._client, self._worker = client, worker
        self.lost = threading.Event()
        self.stopping = stopping
        self.follow_ups: List[NewTask] = []
        self.word: Optional[Dict[str, Any]] = None
        self._guard = threading.Lock()
        self._when_lost: Optional[Callable[[], Any]] = None
        self.outputs: List[Dict[str, Any]] = []

    @property
    def id(self) -> str:
        """The task's handle."""
        return self.task.id

    @property
    def fence(self) -> int:
        """Rises with every attempt. Hand it to outside systems, and have them refuse anything older."""
        return self.task.fence

    @property
    def traceparent(self) -> Optional[str]:
        """Where your own spans belong, as the header `traceparent` has it; None unless the nodes send traces."""
        return self.task.traceparent

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self.task.attempt

    @property
    def is_last_attempt(self) -> bool:
        """Whether a failure makes the task dead."""
        return self.task.attempt >= self.task.max_attempts

    @property
    def payload(self) -> Any:
        """The payload as it was submitted."""
        return self.task.payload

    def lose(self) -> None:
        """The claim is gone: says so to the handler. The worker calls it."""
        with self._guard:
            self.lost.set()
            when_lost = self._when_lost
        if when_lost is not None:
            when_lost()

    def on_lost(self, call: Callable[[], Any]) -> None:
        """Has this called once the claim is lost, at once if it is already."""
        with self._guard:
            self._when_lost = call
            is_lost = self.lost.is_set()
        if is_lost:
            call()

    def check(self) -> None:
        """Raises `ClaimLost` if going on is pointless. Call it now and then in long work."""
        if self.lost.is_set():
            raise ClaimLost(f"the claim of task {self.id} is lost: another attempt has taken over, or it was cancelled", code="stale_fence")

    def progress(self, share: float, note: str = "") -> None:
        """Says how far this attempt is, from 0 to 1, and a few words beside it. The next renewal takes the newest word along; it costs no call of its own.

        It never ends the attempt: what cannot be said is left unsaid, with a warning, and a long note is cut.
        """
        try:
            permille, words = round(min(1.0, max(0.0, float(share))) * 1000), str(note)[:_NOTE_CHARS_MAX]
        except Exception as error:
            log.warning("the progress of task %s is not shown: %s: %s", self.id, type(error).__name__, error)
            return
        # Half a surrogate, as odd file names have it, is no text for a node, which would refuse the renewal of all claims for it.
        words = words.encode("utf-8", "replace").decode("utf-8")
        self.word = {"permille": permille, "note": words} if words else {"permille": permille}

    def last_checkpoint(self) -> Optional[bytes]:
        """What the last attempt kept by `checkpoint`; None if none did. Go on from there."""
        return self._known_client().last_checkpoint(self.task)

    def checkpoint(self, data: bytes) -> None:
        """Keeps how far this attempt has come, for the next one. Raises `Conflict` once another attempt has taken over."""
        self._known_client().keep_checkpoint(self._worker, self.task, data)

    def _known_client(self) -> "Client":
        if self._client is None:
            raise RuntimeError("this attempt has no client: this works inside of a worker")
        return self._client

    @property
    def settings(self) -> Dict[str, str]:
        """Settings of the program that the task names."""
        return dict((self.task.work or {}).get("settings", {}))

    @property
    def inputs(self) -> List[str]:
        """Names of the task's inputs, in order."""
        return [one["name"] for one in (self.task.work or {}).get("inputs", [])]

    def read_input(self, name: str) -> bytes:
        """The bytes of one of the task's inputs."""
        for one in (self.task.work or {}).get("inputs", []):
            if one["name"] == name:
                return self._known_client().read_input(one)
        raise KeyError(f"task {self.id} has no input {name!r}")

    def write_output(self, name: str, data: bytes) -> None:
        """Brings a file; it becomes visible if this attempt counts, with its completion."""
        self.outputs.append({**self._known_client().upload(data), "name": name})

    def follow_up(self, task: NewTask) -> None:
        """Has a task submitted in the very step that completes this one."""
        self.follow_ups.append(task)


def current() -> TaskContext:
    """The attempt that runs the caller, in handlers and in what they call; also after `await`."""
    try:
        return _CURRENT.get()
    except LookupError:
        raise RuntimeError("there is no task here: ikada.current() works inside of handlers") from None
