"""A worker beside a client that only plays a cluster: nothing that a handler does, or that an answer holds, ends its threads."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import unittest
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, cast

import ikada
from ikada import Client, Refused, Unavailable
from ikada.context import TaskContext
from ikada.errors import from_problem
from ikada.models import ClaimedTask, Outcome, encode
from ikada.worker import Worker

PATIENCE_S = 30.0


class Stage:
    """Plays a cluster: hands tasks out once, and notes what the worker says of them."""

    def __init__(self, *names: str) -> None:
        self.changed = threading.Condition()
        self.waiting = [ClaimedTask(f"{place}", "q", 1, 1, 3, 0.3, None, {"task": name}) for place, name in enumerate(names)]
        self.completed: Dict[str, Any] = {}
        self.failed: Dict[str, Dict[str, Any]] = {}
        self.renewed: List[Dict[str, Any]] = []
        self.beats = 0
        self.trouble: List[BaseException] = []
        self.odd_beats = 0

    def note(self, change: Callable[[], Any]) -> None:
        with self.changed:
            change()
            self.changed.notify_all()

    def until(self, holds: Callable[[], bool]) -> None:
        with self.changed:
            if not self.changed.wait_for(holds, timeout=PATIENCE_S):
                raise AssertionError("waited in vain")

    def claim(self, worker: str, queues: Sequence[str], *, count: int, wait_s: float, session: int, labels: Mapping[str, str]) -> List[ClaimedTask]:
        with self.changed:
            taken, self.waiting = self.waiting[:count], self.waiting[count:]
        if not taken:
            time.sleep(0.02)
        return taken

    def renew(self, worker: str, tasks: Sequence[ClaimedTask], *, session: Optional[int] = None, progress: Optional[Mapping[str, Dict[str, Any]]] = None,
              timeout_s: Optional[float] = None) -> List[Outcome]:
        encode(dict(progress or {}))
        with self.changed:
            trouble = self.trouble.pop(0) if self.trouble else None
        if trouble is not None:
            raise trouble
        self.note(lambda: self.renewed.append(dict(progress or {})))
        return [Outcome(one.id, "renewed", None, None) for one in tasks]

    def beat(self, worker: str, **_: Any) -> Dict[str, Any]:
        self.note(lambda: setattr(self, "beats", self.beats + 1))
        return {"hello": "from a proxy"} if self.beats <= self.odd_beats else {"beat_ms": 50, "wanted": "work"}

    def complete(self, worker: str, task: ClaimedTask, result: Any = None, **_: Any) -> None:
        self.note(lambda: self.completed.__setitem__(task.id, result))

    def fail(self, worker: str, task: ClaimedTask, error: str, **more: Any) -> None:
        self.note(lambda: self.failed.__setitem__(task.id, {"error": error, **more}))


class ErrorsTest(unittest.TestCase):
    def test_what_no_wait_helps_is_refused(self) -> None:
        for status, problem, kind in [
            (503, {"code": "no_leader", "retry_after_s": 1}, Unavailable), (429, {"code": "queue_full", "retry_after_s": 1}, Unavailable), (503, {}, Unavailable),
            (503, {"code": "fence_exhausted"}, Refused), (429, {"code": "namespace_objects_full", "retry_after_s": 1}, Refused), (507, {"code": "disk_full"}, Refused),
        ]:
            self.assertIs(type(from_problem(status, problem)), kind, problem)


class SteadyTest(unittest.TestCase):
    def app(self) -> ikada.App:
        return ikada.App("http://127.0.0.1:9")

    def start(self, app: ikada.App, stage: Stage, **settings: Any) -> Worker:
        app.client = cast(Client, stage)
        worker = Worker(app, queues=["q"], **settings)
        thread = threading.Thread(target=worker.run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(worker.stop)
        return worker

    def test_a_handler_that_exits_fails_its_attempt_and_frees_its_slot(self) -> None:
        app = self.app()

        @app.task(queue="q")
        def leave() -> None:
            sys.exit(3)

        @app.task(queue="q")
        async def leave_async() -> None:
            await asyncio.sleep(0)
            raise SystemExit("enough")

        @app.task(queue="q")
        def interrupted() -> None:
            raise KeyboardInterrupt

        @app.task(queue="q")
        async def stay() -> str:
            await asyncio.sleep(0)
            return "here"

        stage = Stage("leave", "leave_async", "interrupted", "stay")
        self.start(app, stage, slots=1)
        stage.until(lambda: len(stage.failed) == 3 and stage.completed == {"3": "here"})
        self.assertIn("SystemExit: 3 at test_steady.py", stage.failed["0"]["error"])
        self.assertIn("SystemExit: enough at test_steady.py", stage.failed["1"]["error"])
        self.assertIn("KeyboardInterrupt", stage.failed["2"]["error"])
        self.assertTrue(all(one.get("retry", True) for one in stage.failed.values()), "another attempt may do better")

    def test_progress_that_cannot_be_said_ends_nothing(self) -> None:
        class Mute:
            def __str__(self) -> str:
                raise RuntimeError("no words")

        said: List[Any] = []
        context = TaskContext(ClaimedTask("t", "q", 1, 1, 1, 1.0, None, None), threading.Event())
        for share, note in [(0.5, "half"), (None, "none"), ("much", ""), (0.1, Mute()), (0.2, 7), (0.3, "\ud800.txt"), (0.4, "x" * 10_000_000), (float("nan"), ""), (float("inf"), "")]:
            context.progress(cast(float, share), cast(str, note))
            encode(context.word)
            said.append(context.word)
        self.assertEqual(said[:4], [{"permille": 500, "note": "half"}] * 4, "the last word that could be said stays")
        self.assertEqual(said[4:6], [{"permille": 200, "note": "7"}, {"permille": 300, "note": "?.txt"}])
        self.assertEqual(len(said[6]["note"]), 256)
        self.assertEqual(said[7:], [{"permille": 0}, {"permille": 1000}])

    def test_renewals_go_on_after_any_error_and_without_words_that_are_refused(self) -> None:
        app, release = self.app(), threading.Event()
        self.addCleanup(release.set)

        @app.task(queue="q")
        def long() -> str:
            ikada.current().progress(0.5, "half")
            release.wait(PATIENCE_S)
            return "whole"

        stage = Stage("long")
        self.start(app, stage)
        stage.until(lambda: {"0": {"permille": 500, "note": "half"}} in stage.renewed)
        with self.assertLogs("ikada.worker", "WARNING") as logged:
            stage.note(lambda: stage.trouble.extend([KeyError("tasks"), Refused("progress.note is no text", code="bad_value", status=400)]))
            before = len(stage.renewed)
            # One turn ends in an error, the next is refused for its words and repeated without them, the one after is as ever.
            stage.until(lambda: len(stage.renewed) >= before + 2)
        self.assertEqual(stage.renewed[before:before + 2], [{}, {"0": {"permille": 500, "note": "half"}}])
        self.assertIn("claims could not be renewed", "".join(logged.output))
        self.assertIn("without their progress", "".join(logged.output))
        release.set()
        stage.until(lambda: stage.completed == {"0": "whole"})

    def test_beats_go_on_after_an_answer_that_is_none(self) -> None:
        app, stage = self.app(), Stage()
        app.task(queue="q")(lambda: None)
        stage.odd_beats = 1
        with self.assertLogs("ikada.worker", "ERROR"):
            self.start(app, stage)
            stage.until(lambda: stage.beats >= 3)


if __name__ == "__main__":
    unittest.main()
