"""What the client promises as a whole: the same for asyncio, TLS, results of jobs, large objects, types."""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from ikada import AsyncClient, Client, Conflict, NotFound, TaskFailed, TimedOut, Unavailable
from ikada.aio import AsyncJobs
from ikada.jobs import Jobs

from .cluster import Cluster, eventually, program

ROOT = Path(__file__).resolve().parents[3]


CALLS = """import ikada
app = ikada.App()
@app.task(queue="mail")
def send(to: str, copies: int = 1) -> str:
    return to * copies
@app.task(queue="mail")
async def report(month: str) -> dict[str, int]:
    return {month: 1}
send.enqueue("ann", copies=2)
send.enqueue(7)  # wrong
send.options(delay_s=1).enqueue("ann", colour="red")  # wrong
send.new("ann")
send.new()  # wrong
length: int = send("ann")  # wrong
async def main() -> None:
    await report.enqueue_async("2026-11")
    await report.enqueue_async(11)  # wrong
"""


def is_ci() -> bool:
    """Whether this is a machine that judges changes: there a missing tool is a failure."""
    return os.environ.get("CI", "") not in ("", "0", "false")


def builder() -> "str | None":
    """A Python that can build packages without fetching anything."""
    for python in (sys.executable, str(ROOT / "target/mypy/bin/python"), "/usr/bin/python3"):
        look = [python, "-W", "ignore", "-c", "import setuptools, wheel, pip"]
        if shutil.which(python) and subprocess.run(look, capture_output=True, check=False).returncode == 0:
            return python
    return None


class TwinsTest(unittest.TestCase):
    def test_asyncio_has_every_call_with_the_same_settings(self) -> None:
        for plain, awaited in ((Client, AsyncClient), (Jobs, AsyncJobs)):
            for name, method in inspect.getmembers(plain, inspect.isfunction):
                if name.startswith("_"):
                    continue
                twin = getattr(awaited, name, None)
                self.assertIsNotNone(twin, f"{awaited.__name__} lacks {name}")
                assert twin is not None
                wanted, given = inspect.signature(method).parameters, inspect.signature(twin).parameters
                self.assertEqual({one: (wanted[one].kind, wanted[one].default) for one in wanted}, {one: (given[one].kind, given[one].default) for one in given}, name)

    def judged(self, *sources: str) -> "subprocess.CompletedProcess[str]":
        """What mypy says in its strictest mood."""
        found = shutil.which("mypy") or shutil.which(str(ROOT / "target/mypy/bin/mypy"))
        if found is None:
            self.assertFalse(is_ci(), "mypy is needed in CI to check the types of the Python package")
            print("SKIPPED: mypy is not installed; install it to check the types of the Python package", file=sys.stderr)
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run([found, "--strict", "--cache-dir", cache, *sources], capture_output=True, text=True, check=False,
                                  cwd=ROOT / "sdk/python", env={**os.environ, "MYPYPATH": str(ROOT / "sdk/python")})

    def test_types_are_sound(self) -> None:
        told = self.judged("ikada")
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)

    def test_arguments_of_a_task_are_those_of_its_function(self) -> None:
        told = self.judged("-c", CALLS)
        wrong = [line.split(":")[1] for line in told.stdout.splitlines() if ": error: " in line]
        marked = [str(number) for number, line in enumerate(CALLS.splitlines(), 1) if line.endswith("# wrong")]
        self.assertEqual(wrong, marked, told.stdout + told.stderr)

    def test_it_is_installed_as_its_pages_say(self) -> None:
        page = (ROOT / "docs/guides/python.md").read_text()
        said = [line for line in page.splitlines() if line.startswith("pip install ")]
        self.assertEqual(said, ["pip install ./sdk/python"])
        python = builder()
        if python is None:
            self.assertFalse(is_ci(), "pip, setuptools and wheel are needed in CI to install the Python package")
            print("SKIPPED: pip, setuptools or wheel is not installed; install them to try the installation", file=sys.stderr)
            self.skipTest("pip, setuptools or wheel is not installed")
        with tempfile.TemporaryDirectory() as folder:
            # A copy, since a build writes beside its sources. What builds it is here already and is not fetched.
            shutil.copytree(ROOT / "sdk/python", Path(folder, "sdk/python"), ignore=shutil.ignore_patterns("__pycache__"))
            words = [python, "-m", *said[0].split(), "--quiet", "--no-index", "--no-build-isolation", "--no-deps", "--target", "there"]
            told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
            look = "import ikada; print(ikada.__file__); ikada.App"
            seen = subprocess.run([sys.executable, "-c", look], cwd=Path(folder, "there"), capture_output=True, text=True, check=False)
            self.assertIn(str(Path(folder, "there")), seen.stdout, seen.stderr)
            self.assertTrue(Path(folder, "there/ikada/py.typed").exists())


class WholeTest(unittest.TestCase):
    cluster: Cluster
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(3)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.settle()
        cls.client = cls.cluster.client()
        cls.addClassCleanup(cls.client.close)

    def worker(self, queue: str) -> None:
        """A worker with the programs that every worker has."""
        bare = {name: value for name, value in os.environ.items() if not name.startswith("IKADA_")}
        command = [program(), "worker", "--slots", "2", "--queue", queue, "--url", self.cluster.urls[0]]
        running: subprocess.Popen[Any] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=bare)

        def end() -> None:
            running.kill()
            running.wait()
        self.addCleanup(end)

    def test_the_shop_of_its_pages_sells(self) -> None:
        for page in ("sdk/python/README.md", "docs/guides/python.md"):
            blocks = [block.split("\n", 1) for block in (ROOT / page).read_text().split("```")[1::2]]
            shop = next(text for mark, text in blocks if mark == "python" and text.startswith("# shop.py"))
            usual = "http://127.0.0.1:7400,http://127.0.0.1:7410,http://127.0.0.1:7420"
            self.assertIn(usual, shop, page)
            commands = [line.split("#")[0].split() for mark, text in blocks if mark.startswith("sh") for line in text.splitlines()]
            start = ["python3", "-m", "ikada", "worker", "shop:app", "--slots", "8"]
            self.assertIn(start, commands, page)
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "shop.py").write_text(shop.replace(usual, ",".join(self.cluster.urls)))
                bare = {name: value for name, value in os.environ.items() if not name.startswith("IKADA_")}
                bare["PYTHONPATH"] = str(ROOT / "sdk/python")
                worker = subprocess.Popen([sys.executable, *start[1:]], cwd=folder, env=bare, stderr=subprocess.DEVNULL)
                try:
                    call = ["python3", "shop.py"] if ["python3", "shop.py"] in commands else None
                    script = call[1:] if call else ["-c", "from shop import *; print(send_mail.enqueue('ann', subject='hello').result(timeout_s=30))"]
                    told = subprocess.run([sys.executable, *script], cwd=folder, env=bare, capture_output=True, text=True, check=False)
                    self.assertEqual(told.stdout, "sent 'hello' to ann\n", told.stderr)
                    # What a shell submits is a task of the same worker.
                    for line in (line for mark, text in blocks if mark.startswith("sh") for line in text.splitlines() if line.startswith("ikada task enqueue ")):
                        bare["IKADA_URL"] = ",".join(self.cluster.urls)
                        command = [program(), *shlex.split(line)[1:], "--output", "quiet"]
                        sent = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False)
                        self.assertEqual(sent.returncode, 0, sent.stderr)
                        self.assertEqual(self.client.handle(sent.stdout.strip()).result(60), "sent 'hello' to ann")
                finally:
                    worker.terminate()
                    self.assertEqual(worker.wait(), 0, "it ends gracefully on SIGTERM")

    def test_the_shop_that_came_from_celery_sells(self) -> None:
        blocks = [block.split("\n", 1) for block in (ROOT / "docs/guides/celery.md").read_text().split("```")[1::2]]
        after = next(text for mark, text in blocks if mark == "python" and text.startswith("# after.py"))
        usual = "http://127.0.0.1:7400,http://127.0.0.1:7410,http://127.0.0.1:7420"
        self.assertIn(usual, after)
        start = next(text.split() for mark, text in blocks if mark.startswith("sh"))
        self.assertEqual(start[:3], ["python3", "-m", "ikada"])
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "after.py").write_text(after.replace(usual, ",".join(self.cluster.urls)))
            bare = {name: value for name, value in os.environ.items() if not name.startswith("IKADA_")}
            bare["PYTHONPATH"] = str(ROOT / "sdk/python")
            worker = subprocess.Popen([sys.executable, *start[1:]], cwd=folder, env=bare, stderr=subprocess.DEVNULL)
            try:
                told = subprocess.run([sys.executable, "after.py"], cwd=folder, env=bare, capture_output=True, text=True, check=False)
                self.assertEqual(told.stdout, "{'order': 'a-17', 'cents': 1250, 'try': 1} {'order': 'a-18', 'cents': 990, 'try': 1}\n", told.stderr)
                receipts = eventually(lambda: [one for one in self.client.tasks(queue="mail", state="done") if one.result == "receipt for a-17"])
                self.assertEqual(len(receipts), 1, "what follows is done once")
            finally:
                worker.terminate()
                self.assertEqual(worker.wait(), 0, "it ends gracefully on SIGTERM")

    def test_a_job_is_done_and_its_result_comes(self) -> None:
        for name, text in (("a", b"one two two"), ("b", b"two three")):
            self.client.put_object("py-words", name, text)
        inputs = [{"name": name, "bucket": "py-words", "key": name} for name in ("a", "b")]
        job = {"id": "py-words", "queue": "py-words", "map": {"program": "wordcount", "inputs": inputs}, "reduce": {"program": "merge"}}
        self.client.jobs.submit(job)
        self.worker("py-words")
        done = self.client.jobs.result("py-words", timeout_s=60)
        self.assertEqual(done.status, "done")
        self.assertEqual(len(done.outputs), 1)
        counted = self.client.get_object(done.outputs[0].bucket, done.outputs[0].key)
        self.assertIn(b"3", counted)
        self.assertEqual(self.client.jobs.show("py-words").tasks_done, 3)

        async def again() -> None:
            async with AsyncClient(self.cluster.urls) as client:
                told = await client.jobs.result("py-words", timeout_s=30)
                self.assertEqual(told, done)
        asyncio.run(again())

    def test_asyncio_works_claims_and_holds(self) -> None:
        async def work() -> None:
            async with AsyncClient(self.cluster.urls) as client:
                await client.set_queue("aio-work", max_attempts=1)
                await client.enqueue(queue="aio-work", id="aio-1")
                self.assertTrue((await client.explain("aio-1"))[0]["sentence"])
                [first] = await client.claim("aw", ["aio-work"], wait_s=10)
                self.assertEqual([one.id async for one in client.tasks(worker="aw", state="claimed")], ["aio-1"])
                self.assertEqual([one.outcome for one in await client.renew("aw", [first])], ["renewed"])
                self.assertTrue((await client.complete("aw", first, {"n": 1})).is_settled)
                self.assertEqual(await client.result("aio-1", timeout_s=30), {"n": 1})
                await client.enqueue(queue="aio-work", id="aio-2")
                [second] = await client.claim("aw", ["aio-work"], wait_s=10)
                await client.fail("aw", second, "no", retry=False)
                with self.assertRaises(TaskFailed):
                    await client.result("aio-2", timeout_s=30)
                async with client.lease("aio-lock", ttl_s=5) as lease:
                    self.assertGreater(lease.fence, 0)
                    with self.assertRaises(TimedOut):
                        await client.lease("aio-lock", wait_s=0.2).__aenter__()
                    lease.check()
                async with client.lease("aio-lock", ttl_s=5, wait_s=30) as later:
                    self.assertGreater(later.fence, lease.fence)
                job = await client.jobs.submit({"id": "aio-job", "queue": "aio-none", "map": {"program": "wordcount", "range": {"from": 0, "to": 2}}})
                with self.assertRaises(TimedOut):
                    await client.jobs.wait(job.id, timeout_s=0.1)
                await client.jobs.cancel(job.id)
                with self.assertRaises(TaskFailed):
                    await client.jobs.result(job.id, timeout_s=30)
                self.assertIn("aio-job", [one.id async for one in client.jobs.list()])
        asyncio.run(work())

    def test_an_object_is_saved_as_its_bytes_come(self) -> None:
        body = bytes(range(251)) * 20_000
        self.client.put_object("py-save", "big", body)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "big"
            self.assertEqual(self.client.save_object("py-save", "big", path), len(body))
            self.assertEqual(path.read_bytes(), body)
            with self.assertRaises(NotFound):
                self.client.save_object("py-save", "none", Path(folder) / "none")
            self.assertEqual([one.name for one in Path(folder).iterdir()], ["big"], "nothing half is left")
            # What breaks off is gone on with from where it was, and never mixed with another version.
            with open(Path(folder) / "part", "w+b") as file:
                sink = Breaking(file, self.client, after=1)
                self.assertEqual(self.client.save_object("py-save", "big", sink), len(body))  # type: ignore[arg-type]
                file.seek(0)
                self.assertEqual(file.read(), body)
            with open(Path(folder) / "changed", "w+b") as file, self.assertRaises(Conflict):
                self.client.save_object("py-save", "big", Breaking(file, self.client, after=1, change=b"other"))  # type: ignore[arg-type]


class Breaking:
    """A file whose disk hiccups once after some pieces, and before it goes on somebody may write the object anew."""

    def __init__(self, file: Any, client: Client, *, after: int, change: bytes = b""):
        self.file, self.client, self.left, self.change = file, client, after, change

    def write(self, piece: bytes) -> int:
        if self.left == 0:
            self.left = -1
            if self.change:
                self.client.put_object("py-save", "big", self.change * 2_000_000)
            raise ConnectionResetError("as if the node had died")
        self.left -= 1
        return int(self.file.write(piece))


class TlsTest(unittest.TestCase):
    def test_tls_is_spoken_and_strangers_are_not_believed(self) -> None:
        cluster = Cluster(1, "--tls")
        self.addCleanup(cluster.stop)
        cluster.urls = [url.replace("http:", "https:") for url in cluster.urls]
        token, authority = cluster.data(0) / "admin-token", cluster.data(0) / "tls" / "ca.pem"
        eventually(lambda: token.exists() and authority.exists())
        settings = {"token": token.read_text(), "ca_file": str(authority)}
        cluster.settle(**settings)
        with cluster.client(**settings) as client:
            client.enqueue(queue="safe", id="s-1")
            self.assertEqual(client.task("s-1").queue, "safe")
            client.put_object("safe", "x", b"1")
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(client.save_object("safe", "x", Path(folder) / "x"), 1)
        with cluster.client(token=token.read_text(), timeout_s=1) as wary, self.assertRaises(Unavailable) as caught:
            wary.queues()
        self.assertEqual(caught.exception.code, "untrusted")


if __name__ == "__main__":
    unittest.main()
