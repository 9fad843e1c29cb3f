"""The worker: claims, runs, renews, reports, and drains when it is told to stop.

Promises: never more claims than slots; every claim is renewed until it is settled; a result is reported until it is settled or the
claim is lost; nothing that a handler raises or says, not even `sys.exit`, ends a thread of the worker or holds up the other claims; after a stop nothing new is claimed, running handlers may end within the grace time, and what is left then is given
back as a failed attempt, so that another worker has it at once and not after a ttl.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import logging
import os
import secrets
import signal
import socket
import threading
import time
import traceback
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .app import App
from .context import _CURRENT, TaskContext
from .errors import ClaimLost, Conflict, Fatal, IkadaError, NotFound, Refused, Retry
from .models import ClaimedTask, encode

log = logging.getLogger("ikada.worker")

_CLAIM_WAIT_S = 2.0
_PAUSE_S = 1.0
# A renewal is also how a worker hears that a task was cancelled: a claim that lives long is renewed soon all the same.
_RENEW_MIN_S, _RENEW_MAX_S = 0.2, 1.2
_RENEW_IDLE_S, _RENEW_PATIENCE_S = 5.0, 5.0
_ERROR_CHARS_MAX = 1000


class Worker:
    """Runs the tasks of an app in so many slots."""

    def __init__(self, app: App, *, queues: Optional[Sequence[str]] = None, slots: int = 4, name: Optional[str] = None,
                 labels: Optional[Mapping[str, str]] = None, grace_s: float = 30.0):
        if slots < 1:
            raise ValueError("a worker needs at least one slot")
        self.app, self.client = app, app.client
        self.queues = list(queues or app.queues)
        if not self.queues:
            raise ValueError("the app has no tasks, and no queues were named")
        self.slots, self.labels, self.grace_s = slots, dict(labels or {}), grace_s
        self.name = name or f"{socket.gethostname().split('.')[0]}-{os.getpid()}"
        # A session is one run of one process: claims that it never heard of are returned to it.
        self.session = secrets.randbits(62) + 1
        self._stopping = threading.Event()
        self._ended = threading.Event()
        # Set once the cluster has ended the session.
        self._removed = False
        self._changed = threading.Condition()
        self._held: Dict[str, TaskContext] = {}
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def stop(self) -> None:
        """Asks for the end: no new claims, running handlers may finish. Returns at once."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def run(self) -> None:
        """Works until `stop` is called, or a SIGTERM or SIGINT arrives (where this is the main thread)."""
        with self._signals(), self._event_loop():
            beside = [threading.Thread(target=work, name=name, daemon=True) for work, name in ((self._renew, "ikada-renew"), (self._beat, "ikada-beat"))]
            for thread in beside:
                thread.start()
            log.info("worker %s takes from %s in %d slots", self.name, ", ".join(self.queues), self.slots)
            try:
                self._claim()
                self._drain()
            finally:
                with self._changed:
                    self._ended.set()
                    self._changed.notify_all()
                for thread in beside:
                    thread.join()

    # Claims

    def _claim(self) -> None:
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._stopping.is_set() or len(self._held) < self.slots)
                free = self.slots - len(self._held)
            if self._stopping.is_set():
                return
            try:
                claimed = self.client.claim(self.name, self.queues, count=free, wait_s=_CLAIM_WAIT_S, session=self.session, labels=self.labels)
            except Refused as error:
                if error.code != "worker_removed":
                    raise
                self._be_removed()
                return
            except IkadaError as error:
                log.warning("no tasks can be claimed: %s", error)
                self._stopping.wait(_PAUSE_S)
                continue
            for task in claimed:
                context = TaskContext(task, self._stopping, client=self.client, worker=self.name)
                with self._changed:
                    self._held[task.id] = context
                    self._changed.notify_all()
                # Threads of their own, which do not hold up the end of the process: a handler may hang for ever.
                threading.Thread(target=self._serve, args=(context,), name=f"ikada-{task.id}", daemon=True).start()

    def _drain(self) -> None:
        log.info("worker %s stops; %d tasks are running", self.name, len(self._held))
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._removed, timeout=self.grace_s)
            left = list(self._held.values())
        for context in left:
            context.lost.set()
            with contextlib.suppress(IkadaError):
                self.client.fail(self.name, context.task, "the worker was stopped before the handler ended", delay_s=0)

    # One task

    def _serve(self, context: TaskContext) -> None:
        token = _CURRENT.set(context)
        try:
            self._settle(context)
        except Exception:
            log.exception("task %s could not be reported", context.id)
        finally:
            _CURRENT.reset(token)
            with self._changed:
                self._held.pop(context.id, None)
                self._changed.notify_all()

    def _settle(self, context: TaskContext) -> None:
        failure: Dict[str, Any] = {}
        result: Any = None
        try:
            result = self._run(context)
            if not isinstance(result, (bytes, bytearray, memoryview)):
                encode(result)
        except ClaimLost:
            return
        except Fatal as error:
            failure = {"error": _cut(str(error) or "the handler gave up"), "retry": False}
        except Retry as error:
            failure = {"error": _cut(str(error)), "delay_s": error.delay_s}
        except BaseException as error:
            # Also what is no Exception: `sys.exit` in a handler, or in a library below it, ends the attempt and nothing else.
            log.warning("task %s failed", context.id, exc_info=True)
            failure = {"error": _describe(error)}
        while not context.lost.is_set():
            try:
                if failure:
                    self.client.fail(self.name, context.task, **failure)
                else:
                    self.client.complete(self.name, context.task, result, then=context.follow_ups, outputs=context.outputs)
                return
            except (Conflict, NotFound) as error:
                log.warning("the result of task %s does not count: %s", context.id, error)
                return
            except Refused as error:
                # The result itself is not taken, say for its size: the attempt failed, and the reason should be seen.
                if failure:
                    raise
                failure = {"error": _cut(f"the result was refused: {error}"), "retry": False}
            except IkadaError as error:
                log.warning("task %s cannot be reported yet: %s", context.id, error)
                time.sleep(_PAUSE_S)

    def _run(self, context: TaskContext) -> Any:
        if context.task.work is not None:
            return self._finish(context, self._program(context)(context))
        payload = context.task.payload
        name = payload.get("task") if isinstance(payload, dict) else None
        bound = self.app.tasks.get(name) if isinstance(name, str) else None
        if bound is None:
            raise LookupError(f"this worker has no task named {name!r}; it knows {', '.join(sorted(self.app.tasks)) or 'none'}")
        args, kwargs = payload.get("args", []), payload.get("kwargs", {})
        return self._finish(context, bound.function(*args, **kwargs))

    def _program(self, context: TaskContext) -> Any:
        program = (context.task.work or {})["program"]
        found = self.app.programs.get(program["name"]) if program["kind"] == "handler" else None
        if found is None:
            known = ", ".join(sorted(self.app.programs)) or "none"
            raise LookupError(f"this worker does not run the {program['kind']} {program['name']!r}; it knows {known}")
        return found

    def _finish(self, context: TaskContext, result: Any) -> Any:
        if inspect.isawaitable(result):
            assert self._loop is not None
            return self._await(context, asyncio.run_coroutine_threadsafe(_await(result), self._loop))
        return result

    def _await(self, context: TaskContext, future: "concurrent.futures.Future[Tuple[Any, Optional[BaseException]]]") -> Any:
        """Waits for an async handler, which ends at its next `await` once the claim is lost."""
        context.on_lost(future.cancel)
        try:
            result, exited = future.result()
        except concurrent.futures.CancelledError:
            context.check()
            raise
        if exited is not None:
            raise exited
        return result

    # Renewals

    def _renew(self) -> None:
        renewed = time.monotonic()
        while True:
            with self._changed:
                # Looked at anew after every change: a claim that has just come may live shorter than those before it.
                while not self._ended.is_set() and (left_s := renewed + self._renew_after_s() - time.monotonic()) > 0:
                    self._changed.wait(left_s)
                held = list(self._held.values())
            if self._ended.is_set():
                return
            renewed = time.monotonic()
            try:
                self._renew_once(held)
            except IkadaError as error:
                log.warning("claims cannot be renewed yet: %s", error)
            except Exception:
                # Whatever it is, the claims need this thread: it goes on at the next turn.
                log.exception("claims could not be renewed")

    def _renew_once(self, held: List[TaskContext]) -> None:
        tasks, said = [one.task for one in held], {one.id: one.word for one in held if one.word is not None}
        try:
            outcomes = self.client.renew(self.name, tasks, session=self.session, progress=said, timeout_s=_RENEW_PATIENCE_S)
        except (Refused, TypeError, ValueError) as error:
            if not said:
                raise
            # Words on progress are a service to the reader; the claims do not depend on them.
            log.warning("claims are renewed without their progress: %s", error)
            outcomes = self.client.renew(self.name, tasks, session=self.session, timeout_s=_RENEW_PATIENCE_S)
        for context, outcome in zip(held, outcomes):
            if outcome.outcome == "refused" and context.id in self._held:
                context.lose()
                log.warning("the claim of task %s is lost", context.id)

    def _renew_after_s(self) -> float:
        if not self._held:
            return _RENEW_IDLE_S
        shortest = min(one.task.ttl_s for one in self._held.values())
        return min(_RENEW_MAX_S, max(_RENEW_MIN_S, shortest / 3))

    # Beats

    def _beat(self) -> None:
        """Says every few seconds that this worker lives, and hears what is wanted of it: `ikada worker-pool drain` reaches it this way."""
        after_s = 0.0
        while not self._ended.wait(after_s):
            try:
                orders = self.client.beat(self.name, session=self.session, slots=self.slots, busy=len(self._held), labels=self.labels, queues=self.queues)
                after_s, wanted = orders["beat_ms"] / 1000, orders["wanted"]
            except Refused as error:
                log.warning("this worker is not listed: %s", error)
                return
            except IkadaError as error:
                log.warning("no beat reaches the cluster yet: %s", error)
                after_s = _PAUSE_S
                continue
            except Exception:
                # Say an answer of something between that is no node: `drain` must still find its way here once it is gone.
                log.exception("a beat failed")
                after_s = _PAUSE_S
                continue
            if wanted == "stop":
                self._be_removed()
            elif wanted != "work" and not self._stopping.is_set():
                log.info("the cluster wants this worker to %s", wanted)
                self.stop()
        with contextlib.suppress(IkadaError):
            self.client.beat(self.name, session=self.session, slots=self.slots, busy=0, labels=self.labels, queues=self.queues, leaving=True, timeout_s=2)

    def _be_removed(self) -> None:
        """The cluster has ended this session, and others run its tasks: what runs here is told so, and nothing is waited for."""
        log.warning("worker %s was removed", self.name)
        with self._changed:
            self._removed = True
            held = list(self._held.values())
        for context in held:
            context.lose()
        self.stop()

    # Surroundings

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def _event_loop(self) -> Iterator[None]:
        """One loop for all async handlers, in a thread of its own."""
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, name="ikada-loop", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._end_loop)
            thread.join()
            self._loop.close()

    def _end_loop(self) -> None:
        assert self._loop is not None
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)


async def _await(awaitable: Any) -> Tuple[Any, Optional[BaseException]]:
    """What a handler returned, or how it wanted to exit: raised here, that would end the loop and with it every other async handler."""
    try:
        return await awaitable, None
    except (SystemExit, KeyboardInterrupt) as error:
        return None, error


def _describe(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(last[-1].filename)}:{last[-1].lineno}" if last else ""
    return _cut(f"{type(error).__name__}: {error}{where}")


def _cut(text: str) -> str:
    return text if len(text) <= _ERROR_CHARS_MAX else text[: _ERROR_CHARS_MAX - 1] + "…"


__all__: List[str] = ["ClaimedTask", "Worker"]
