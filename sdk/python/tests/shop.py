"""Tasks for the tests of the worker; its cluster is named by IKADA_URL."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import ikada

app = ikada.App(timeout_s=20)


@app.task(queue="shop", max_attempts=3, backoff_s=(0.05, 0.1))
def add(one: int, other: int) -> int:
    return one + other


@app.task(queue="shop", max_attempts=4, backoff_s=(0.05, 0.1))
def third_time_lucky() -> "dict[str, int]":
    task = ikada.current()
    if task.attempt < 3:
        raise RuntimeError(f"attempt {task.attempt} slips")
    return {"attempt": task.attempt, "fence": task.fence}


@app.task(queue="shop", max_attempts=4, backoff_s=(0.05, 0.1))
def step_by_step() -> "list[str]":
    task = ikada.current()
    steps = (task.last_checkpoint() or b"").decode().split()
    steps.append(f"step{task.attempt}")
    task.checkpoint(" ".join(steps).encode())
    if len(steps) < 3:
        raise RuntimeError("power failure")
    return steps


@app.task(queue="shop", max_attempts=4)
def hopeless() -> None:
    raise ikada.Fatal("no such customer")


@app.task(queue="shop", max_attempts=4)
def later() -> int:
    if ikada.current().attempt == 1:
        raise ikada.Retry("come back", delay_s=0.1)
    return ikada.current().attempt


@app.task(queue="shop")
async def nap(seconds: float) -> str:
    before = ikada.current().id
    await asyncio.sleep(seconds)
    assert ikada.current().id == before
    return before


@app.task(queue="shop")
def huge() -> str:
    return "x" * 100_000


@app.task(queue="shop")
def order(item: str) -> str:
    ikada.current().follow_up(add.new(1, 2))
    return item


@app.task(queue="slow", ttl_s=1, max_attempts=1)
def slow(seconds: float) -> str:
    """Longer than its claim lives: only renewals keep it."""
    time.sleep(seconds)
    return "still mine"


@app.task(queue="slow", ttl_s=2, max_attempts=5)
def marked(path: str, seconds: float) -> int:
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    return len(Path(path).read_text(encoding="utf-8").splitlines())


@app.task(queue="slow", ttl_s=1, max_attempts=1)
def halfway(seconds: float) -> None:
    ikada.current().progress(0.5, "half of it")
    time.sleep(seconds)


@app.task(queue="shop")
def wait_until_lost() -> None:
    for _ in range(600):
        ikada.current().check()
        time.sleep(0.1)


@app.task(queue="shop")
async def sleep_long() -> None:
    """Looks at nothing: a lost claim must end it from outside."""
    await asyncio.sleep(600)


@app.program(queue="programs")
def shout(task: ikada.TaskContext) -> Any:
    """Writes its inputs in capitals."""
    sizes = {}
    for name in task.inputs:
        text = task.read_input(name)
        task.write_output(f"loud/{name}", text.upper() + task.settings["mark"].encode())
        sizes[name] = len(text)
    return sizes
