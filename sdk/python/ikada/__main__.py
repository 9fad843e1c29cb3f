"""`python3 -m ikada worker module:app`: runs the tasks of an app."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys

from .app import App
from .worker import Worker


def main() -> int:
    """Reads the command line and works; 0 after a graceful end, 2 for a bad command line."""
    parser = argparse.ArgumentParser(prog="python3 -m ikada", description="Run the tasks of an Ikada app.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    worker = verbs.add_parser("worker", help="claim and run tasks until SIGTERM", epilog="example: python3 -m ikada worker shop:app --slots 8")
    worker.add_argument("app", help="module and variable, such as shop:app")
    worker.add_argument("--slots", type=int, default=4, help="tasks at a time (default 4)")
    worker.add_argument("--queue", action="append", help="take from this queue only; may be repeated (default: the queues of all tasks)")
    worker.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="what this worker has; may be repeated")
    worker.add_argument("--name", help="the worker's name (default: host and process)")
    worker.add_argument("--grace", type=float, default=30.0, metavar="SECONDS", help="time for running tasks after a stop (default 30)")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    sys.path.insert(0, "")
    module, _, variable = given.app.partition(":")
    app = getattr(importlib.import_module(module), variable or "app")
    if not isinstance(app, App):
        parser.error(f"{given.app} is no ikada.App")
    labels = dict(pair.split("=", 1) for pair in given.label if "=" in pair)
    if len(labels) != len(given.label):
        parser.error("a label is NAME=VALUE")
    Worker(app, queues=given.queue, slots=given.slots, name=given.name, labels=labels, grace_s=given.grace).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
