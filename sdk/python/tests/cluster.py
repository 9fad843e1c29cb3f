"""Clusters of real processes for the tests. IKADA_PROGRAM names the binary."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional

from ikada import Client, IkadaError

PATIENCE_S = 60.0


def program() -> str:
    """The binary under test."""
    path = os.environ.get("IKADA_PROGRAM")
    if not path:
        raise unittest.SkipTest("IKADA_PROGRAM names no ikada binary")
    return path


def free_ports(count: int) -> List[int]:
    """Ports below those that the system hands out for outgoing connections."""
    found: List[int] = []
    while len(found) < count:
        port = random.randrange(28_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


class Cluster:
    """Nodes that can be killed; ended by `stop`. Where a database is given for the tests, each cluster has its logs in a schema there."""

    founded = 0

    def __init__(self, count: int = 3, *flags: str):
        self.folder = tempfile.TemporaryDirectory(prefix="ikada-python-")
        ports = free_ports(count * 2)
        self.urls = [f"http://127.0.0.1:{port}" for port in ports[:count]]
        self.nodes: List[Optional[subprocess.Popen[Any]]] = []
        Cluster.founded += 1
        settings = {name: value for name, value in os.environ.items() if not name.startswith("IKADA_")}
        for place in range(count):
            ways = [part for other in range(count) if other != place for part in ("--peer", f"127.0.0.1:{ports[count + other]}")]
            if "IKADA_TEST_LOG_URL" in os.environ:
                ways = ["--log", os.environ["IKADA_TEST_LOG_URL"] + f"?options=-csearch_path%3Dcluster_{Cluster.founded}"]
            command = [program(), "server", "--node-id", str(place + 1), "--data", str(self.data(place)), "--expect", str(count), "--shards", "2",
                       "--listen", f"127.0.0.1:{ports[place]}", "--peer-listen", f"127.0.0.1:{ports[count + place]}", "--until-stdin-closes", "--shed", "off", *ways, *flags]
            log = open(Path(self.folder.name) / f"{place + 1}.log", "w")
            self.nodes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, env=settings))
            log.close()

    def data(self, place: int) -> Path:
        """The data folder of a node."""
        return Path(self.folder.name) / f"node-{place + 1}"

    def client(self, **settings: Any) -> Client:
        """A client of all nodes."""
        return Client(self.urls, **settings)

    def settle(self, **settings: Any) -> None:
        """Waits until the cluster serves."""
        def serves() -> bool:
            with self.client(timeout_s=2, **settings) as client:
                try:
                    client.queues()
                    return True
                except IkadaError:
                    return False
        eventually(serves)

    def leader(self, shard: int = 0) -> int:
        """The place of the node that leads a shard."""
        def ask() -> Optional[int]:
            with self.client() as client:
                view: Dict[str, Any] = client._transport.call("GET", "/v1/cluster").json()
            leader = next(one for one in view["shards"] if one["shard"] == shard).get("leader")
            return None if leader is None else int(leader)
        return int(eventually(ask)) - 1

    def kill(self, place: int) -> None:
        """Ends a node without warning."""
        node, self.nodes[place] = self.nodes[place], None
        assert node is not None and node.stdin is not None
        node.kill()
        node.wait()
        node.stdin.close()

    def stop(self) -> None:
        """Ends all nodes and removes their folders."""
        for place, node in enumerate(self.nodes):
            if node is not None:
                self.kill(place)
        self.folder.cleanup()


def eventually(look: Any) -> Any:
    """Looks until there is something to see; a limit is only there so that a hang becomes a failure."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {look}")
        time.sleep(0.05)
