"""The client against three real nodes, one of which is killed."""

from __future__ import annotations

import asyncio
import io
import unittest

from ikada import AsyncClient, Client, Conflict, NewTask, NotFound, Refused, TaskFailed, TimedOut, Unavailable

from .cluster import Cluster, eventually, free_ports


class ClientTest(unittest.TestCase):
    cluster: Cluster
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(3)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.settle()
        cls.client = cls.cluster.client()
        cls.addClassCleanup(cls.client.close)

    def test_a_request_happens_once(self) -> None:
        first = self.client.enqueue(queue="once", payload={"n": 1}, request="order-1")
        again = self.client.enqueue(queue="once", payload={"n": 1}, request="order-1")
        self.assertEqual(first.id, again.id)
        with self.assertRaises(Conflict):
            self.client.enqueue(queue="once", payload={"n": 2}, request="order-1")
        self.assertEqual(self.client.queue("once")["counts"]["submitted_total"], 1)
        self.assertEqual(self.client.request_outcome("order-1")["status"], "committed")

    def test_settings_payloads_and_bytes_return_as_given(self) -> None:
        payload = {"text": "ü <script>", "big": 12345678901234567890, "deep": [1, [2, {"x": None}]]}
        handle = self.client.enqueue(NewTask(queue="values", id="v1", payload=payload, priority=7, delay_s=3600, max_attempts=2, labels={"gpu": "a100"}, backoff_s=(0.5, 2)))
        task = handle.task()
        self.assertEqual((task.payload, task.state, task.max_attempts, task.raw["priority"], task.raw["labels"]), (payload, "scheduled", 2, 7, {"gpu": "a100"}))
        self.assertEqual(task.raw["backoff"], {"base_ms": 500, "cap_ms": 2000})
        raw = self.client.enqueue(queue="values", payload=b"\x00\xff").task()
        self.assertEqual(raw.payload, b"\x00\xff")
        self.assertEqual(self.client.explain("v1")[0]["code"], "delayed")

    def test_bad_input_is_refused_and_named(self) -> None:
        with self.assertRaises(Refused) as caught:
            self.client.enqueue(queue="no spaces here")
        self.assertEqual((caught.exception.status, caught.exception.field), (400, "queue"))
        with self.assertRaises(ValueError):
            self.client.enqueue(payload=float("nan"))
        with self.assertRaises(NotFound):
            self.client.task("nobody")
        for bad in ["", "ftp://x", "http://"]:
            with self.assertRaises(ValueError):
                Client([bad])

    def test_batches_have_an_outcome_per_item(self) -> None:
        outcomes = self.client.enqueue_many([NewTask(queue="many", id="m1"), NewTask(queue="many", priority=99), NewTask(queue="many", id="m2")])
        self.assertEqual([one.outcome for one in outcomes], ["created", "refused", "created"])
        assert outcomes[1].problem is not None
        self.assertEqual(outcomes[1].problem["field"], "tasks[1].priority")
        self.assertEqual(sorted(task.id for task in self.client.tasks(queue="many")), ["m1", "m2"])
        self.assertEqual([task.id for task in self.client.tasks(queue="many", find="2")], ["m2"])

    def test_a_worker_by_hand_and_a_stale_one(self) -> None:
        self.client.enqueue(queue="hand", id="h1", ttl_s=1, max_attempts=3)
        [first] = self.client.claim("w1", ["hand"], wait_s=5)
        self.client.fail("w1", first, "again", delay_s=0)
        [second] = self.client.claim("w2", ["hand"], wait_s=5)
        self.assertGreater(second.fence, first.fence)
        with self.assertRaises(Conflict) as caught:
            self.client.complete("w1", first, "late")
        self.assertIn(caught.exception.code, ("stale_fence", "not_owner"))
        self.assertEqual([one.outcome for one in self.client.renew("w2", [second])], ["renewed"])
        self.client.complete("w2", second, {"ok": True}, then=[NewTask(queue="hand-next", id="next")])
        self.client.complete("w2", second, {"ok": True}, then=[NewTask(queue="hand-next", id="next")])
        task = self.client.task("h1")
        self.assertEqual((task.state, task.result, [one.outcome for one in task.attempts]), ("done", {"ok": True}, ["failed", "completed"]))
        self.assertEqual(self.client.task("h1:next").state, "ready")

    def test_waiting_ends_and_failures_are_told(self) -> None:
        handle = self.client.enqueue(queue="nobody-works", max_attempts=1)
        with self.assertRaises(TimedOut):
            handle.result(timeout_s=0.1)
        handle.cancel()
        with self.assertRaises(TaskFailed):
            handle.result(timeout_s=30)
        self.client.retry(handle.id)
        self.assertEqual(handle.task().state, "ready")

    def test_queues_pause_and_resume(self) -> None:
        self.client.set_queue("held", max_attempts=9)
        self.client.pause_queue("held")
        found = self.client.queue("held")["settings"]
        self.assertEqual((found["paused"], found["max_attempts"]), (True, 9))
        self.client.resume_queue("held")
        self.assertFalse(self.client.queue("held")["settings"]["paused"])

    def test_schedules_come_page_by_page(self) -> None:
        wanted = [f"beat-{number:03}" for number in range(105)]
        for name in wanted:
            self.client.set_schedule(name, NewTask(queue="beats"), every_ms=3_600_000, paused=True)
        self.assertEqual([one["name"] for one in self.client.schedules()], wanted, "more than one page of a hundred")

        async def names() -> "list[str]":
            async with AsyncClient(self.cluster.urls) as client:
                return [one["name"] async for one in client.schedules()]

        self.assertEqual(asyncio.run(names()), wanted)
        self.client.resume_schedule("beat-000")
        self.assertEqual(len(self.client.schedule("beat-000")["next_ms"]), 5)
        self.client.pause_schedule("beat-000")
        self.assertEqual(self.client.schedule("beat-000")["next_ms"], [])
        for name in wanted:
            self.client.delete_schedule(name)
        self.assertEqual(list(self.client.schedules()), [])

    def test_a_job_is_submitted_followed_and_cancelled(self) -> None:
        job = {"id": "py-count", "queue": "py-jobs", "map": {"program": "wordcount", "range": {"from": 0, "to": 8}}, "reduce": {"program": "merge"}}
        begun = self.client.jobs.submit(job, request="py-job-1")
        self.assertEqual((begun.id, begun.tasks_total), ("py-count", 9))
        self.assertEqual(self.client.jobs.submit(job, request="py-job-1").id, "py-count")
        self.assertIn("py-count", [one.id for one in self.client.jobs.list()])
        with self.assertRaises(TimedOut):
            self.client.jobs.wait("py-count", timeout_s=0.3)
        self.client.jobs.cancel("py-count")
        with self.assertRaises(TaskFailed) as caught:
            self.client.jobs.result("py-count", timeout_s=60)
        self.assertEqual(caught.exception.code, "cancelled")

    def test_a_lease_has_one_holder_and_rising_fences(self) -> None:
        with self.client.lease("py-lock", ttl_s=2) as first:
            with self.assertRaises(TimedOut):
                self.client.lease("py-lock", wait_s=0.3).__enter__()
            first.check()
        with self.client.lease("py-lock", ttl_s=2, wait_s=30) as second:
            self.assertGreater(second.fence, first.fence)
            self.assertFalse(second.lost.wait(3), "renewals keep it")

    def test_objects_go_up_and_come_down(self) -> None:
        body = bytes(range(256)) * 8192
        stored = self.client.put_object("py", "a/ü b.bin", io.BytesIO(body), content_type="application/x-test")
        self.assertEqual((stored.size, stored.content_type), (len(body), "application/x-test"))
        self.assertEqual(self.client.get_object("py", "a/ü b.bin"), body)
        with self.assertRaises(Conflict):
            self.client.put_object("py", "a/ü b.bin", b"other", only_new=True)
        self.client.put_object("py", "b", b"")
        self.assertEqual([one.key for one in self.client.objects("py")], ["a/ü b.bin", "b"])
        self.client.delete_object("py", "b")
        with self.assertRaises(NotFound):
            self.client.get_object("py", "b")

    def test_asyncio_sees_the_same(self) -> None:
        async def work() -> None:
            async with AsyncClient(self.cluster.urls) as client:
                handles = await asyncio.gather(*(client.enqueue(queue="aio", id=f"aio-{n}") for n in range(20)))
                self.assertEqual(len({handle.id for handle in handles}), 20)
                self.assertEqual(len([task async for task in client.tasks(queue="aio")]), 20)
                await client.cancel("aio-0")
                with self.assertRaises(TaskFailed):
                    await client.result("aio-0", timeout_s=30)
                await client.put_object("aio", "x", b"1")
                self.assertEqual(await client.get_object("aio", "x"), b"1")

        asyncio.run(work())


class TroubleTest(unittest.TestCase):
    def test_a_killed_leader_is_not_noticed_by_callers(self) -> None:
        cluster = Cluster(3)
        self.addCleanup(cluster.stop)
        cluster.settle()
        client = cluster.client(timeout_s=60)
        self.addCleanup(client.close)
        for n in range(40):
            if n == 20:
                cluster.kill(cluster.leader())
            client.enqueue(queue="storm", id=f"s-{n}", request=f"storm-{n}")
        self.assertEqual(client.queue("storm")["counts"]["submitted_total"], 40)

    def test_no_node_at_all_is_unavailable(self) -> None:
        client = Client(f"http://127.0.0.1:{free_ports(1)[0]}", timeout_s=0.5)
        with self.assertRaises(Unavailable):
            client.enqueue(queue="x")

    def test_tokens_are_sent(self) -> None:
        cluster = Cluster(1, "--auth")
        self.addCleanup(cluster.stop)
        path = cluster.data(0) / "admin-token"
        eventually(path.exists)
        token = path.read_text()
        cluster.settle(token=token)
        with cluster.client() as stranger, self.assertRaises(Refused) as caught:
            stranger.queues()
        self.assertEqual(caught.exception.status, 401)
        with cluster.client(token=token, namespace="blue") as known:
            self.assertEqual(known.queues(), [])


if __name__ == "__main__":
    unittest.main()
