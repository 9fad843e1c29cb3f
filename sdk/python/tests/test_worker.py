"""Workers as processes: results, retries, renewals, a killed leader, a killed worker, a graceful end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, List

import ikada

from .cluster import Cluster, eventually

HERE = Path(__file__).parent


class WorkerTest(unittest.TestCase):
    cluster: Cluster
    client: ikada.Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(3)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.settle()
        cls.client = cls.cluster.client(timeout_s=60)
        cls.addClassCleanup(cls.client.close)
        os.environ["IKADA_URL"] = ",".join(cls.cluster.urls)
        cls.addClassCleanup(os.environ.pop, "IKADA_URL")
        sys.path.insert(0, str(HERE))
        cls.addClassCleanup(sys.path.remove, str(HERE))
        import shop
        cls.shop = shop
        cls.addClassCleanup(shop.app.client.close)

    shop: Any

    def worker(self, *flags: str) -> "subprocess.Popen[bytes]":
        """Starts a worker process; killed at the end of the test if it still runs."""
        paths = os.pathsep.join([str(HERE), str(HERE.parent)])
        command = [sys.executable, "-m", "ikada", "worker", "shop:app", *flags]
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_job_runs_a_program_of_this_worker(self) -> None:
        self.client.push_handler("shout")
        self.client.put_object("texts", "a.txt", b"one two three")
        self.worker("--queue", "programs", "--slots", "2")
        inputs = [{"name": "a.txt", "bucket": "texts", "key": "a.txt", "offset": 4, "length": 3}, {"name": "b.txt", "text": "four"}]
        stage = {"program": "shout", "settings": {"mark": "!"}, "inputs": inputs}
        job = self.client.jobs.submit({"queue": "programs", "map": stage})
        done = self.client.jobs.result(job.id, 60)
        loud = {one.key: self.client.get_object("jobs", one.key) for one in done.outputs}
        self.assertEqual(loud, {f"{job.id}/map/0/loud/a.txt": b"TWO!", f"{job.id}/map/1/loud/b.txt": b"FOUR!"})

    def test_tasks_run_retry_fail_and_follow_up(self) -> None:
        self.worker("--queue", "shop", "--slots", "4")
        shop = self.shop
        self.assertEqual(shop.add(2, 3), 5, "a task is still a function")
        self.assertEqual(shop.add.enqueue(2, other=3).result(60), 5)
        lucky = shop.third_time_lucky.enqueue()
        self.assertEqual(lucky.result(60)["attempt"], 3)
        attempts = lucky.task().attempts
        self.assertEqual([one.outcome for one in attempts], ["failed", "failed", "completed"])
        self.assertIn("RuntimeError: attempt 1 slips at shop.py", attempts[0].error or "")
        self.assertEqual(sorted(one.fence for one in attempts), [one.fence for one in attempts])
        self.assertEqual(shop.step_by_step.enqueue().result(60), ["step1", "step2", "step3"], "each attempt goes on from the last")
        with self.assertRaises(ikada.TaskFailed) as caught:
            shop.hopeless.enqueue().result(60)
        self.assertIn("no such customer", str(caught.exception))
        self.assertEqual(caught.exception.code, "not_retryable")
        self.assertEqual(shop.later.enqueue().result(60), 2)
        naps = [shop.nap.enqueue(0.3) for _ in range(6)]
        self.assertEqual([one.result(60) for one in naps], [one.id for one in naps])
        with self.assertRaises(ikada.TaskFailed) as caught:
            shop.huge.enqueue().result(60)
        self.assertIn("the result was refused", str(caught.exception))
        ordered = shop.order.enqueue("lamp")
        self.assertEqual(ordered.result(60), "lamp")
        [follow_up] = [one for one in self.client.tasks(queue="shop") if one.id.startswith(f"{ordered.id}:")]
        self.assertEqual(self.client.handle(follow_up.id).result(60), 3)
        with self.assertRaises(ikada.TaskFailed) as caught:
            self.client.enqueue(queue="shop", payload={"task": "unheard_of"}, max_attempts=1).result(60)
        self.assertIn("this worker has no task named 'unheard_of'", str(caught.exception))

    def test_tq_19_a_handler_says_how_far_it_is(self) -> None:
        self.worker("--queue", "slow", "--slots", "1")
        task = self.shop.halfway.enqueue(4)
        eventually(lambda: task.task().progress is not None)
        self.assertEqual(task.task().progress, (0.5, "half of it"))
        task.result(60)
        self.assertIsNone(task.task().progress, "it goes with the attempt")

    def test_renewals_keep_a_long_task_while_its_leader_is_killed(self) -> None:
        cluster = Cluster(3)
        self.addCleanup(cluster.stop)
        cluster.settle()
        os.environ["IKADA_URL"] = ",".join(cluster.urls)
        self.addCleanup(os.environ.__setitem__, "IKADA_URL", ",".join(self.cluster.urls))
        self.worker("--queue", "slow")
        client = cluster.client(timeout_s=60)
        self.addCleanup(client.close)
        handle = client.enqueue(self.shop.slow.new(6))
        eventually(lambda: handle.task().state == "claimed")
        cluster.kill(cluster.leader())
        task = handle.wait(90)
        self.assertEqual((task.state, task.result, task.attempts_begun), ("done", "still mine", 1))

    def test_a_killed_worker_costs_one_attempt(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "runs")
            first = self.worker("--queue", "slow")
            handle = self.shop.marked.enqueue(path, 3)
            # The line itself, not only the file: between the two the worker may be killed without a mark.
            eventually(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
            first.kill()
            self.worker("--queue", "slow")
            self.assertGreaterEqual(handle.result(90), 2)
            outcomes = [one.outcome for one in handle.task().attempts]
            # A slow machine may cost the second worker an attempt as well; the killed one's was lost in any case.
            self.assertEqual((outcomes[0], outcomes[-1]), ("expired", "completed"))

    def test_a_graceful_end_finishes_what_runs_and_gives_back_the_rest(self) -> None:
        ended: List[int] = []
        worker = self.worker("--queue", "slow", "--slots", "2", "--grace", "8")
        short, endless = self.shop.slow.enqueue(3), self.shop.slow.options(max_attempts=2).enqueue(600)
        eventually(lambda: short.task().state == "claimed" and endless.task().state == "claimed")
        waiting = self.shop.slow.enqueue(0)
        worker.send_signal(signal.SIGTERM)
        ended.append(worker.wait(60))
        self.assertEqual(ended, [0])
        self.assertEqual(short.task().result, "still mine")
        self.assertEqual(waiting.task().state, "ready", "nothing new was claimed")
        left = endless.task()
        self.assertEqual([one.outcome for one in left.attempts], ["failed"])
        self.assertIn("the worker was stopped", left.attempts[0].error or "")
        endless.cancel()
        waiting.cancel()

    def test_a_worker_is_listed_and_leaves_when_it_is_drained(self) -> None:
        worker = self.worker("--queue", "shop", "--slots", "3", "--name", "listed-1", "--label", "gpu=a100")
        found = eventually(lambda: next((one for one in self.client.workers() if one["id"] == "listed-1"), None))
        self.assertEqual((found["slots"], found["queues"], found["labels"]), (3, ["shop"], {"gpu": "a100"}))
        self.client.drain_worker("listed-1")
        self.assertEqual(worker.wait(60), 0)

    def test_b4_19_a_removed_worker_ends_at_once_though_a_handler_runs(self) -> None:
        # A queue of its own: a worker of another test that was killed may still be handed a task.
        worker = self.worker("--queue", "endless", "--slots", "2", "--name", "removed-1", "--grace", "600")
        endless = self.shop.slow.options(queue="endless", max_attempts=2).enqueue(600)
        eventually(lambda: endless.task().state == "claimed")
        eventually(lambda: next((one for one in self.client.workers() if one["id"] == "removed-1"), None))
        self.client._transport.call("DELETE", "/v1/workers/removed-1", keyed=True)
        self.assertEqual(worker.wait(60), 0)
        eventually(lambda: endless.task().state == "ready")
        endless.cancel()

    def test_a_cancelled_task_is_noticed_by_its_handler(self) -> None:
        worker = self.worker("--queue", "shop", "--slots", "1")
        for handler in (self.shop.wait_until_lost, self.shop.sleep_long):
            with self.subTest(handler=handler.name):
                handle = handler.enqueue()
                eventually(lambda: handle.task().state == "claimed")
                handle.cancel()
                self.assertEqual(self.shop.add.enqueue(1, 1).result(60), 2, "the only slot is free again")
                self.assertEqual(handle.task().state, "cancelled")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(60), 0)


if __name__ == "__main__":
    unittest.main()
