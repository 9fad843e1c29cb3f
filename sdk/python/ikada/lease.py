"""A lease as a `with` block: a lock that ends by itself when its holder does.

Promise: `lost` is set before the cluster can have given the lease to another, as far as clocks run alike: time is counted from before
each renewal was sent, by this machine's monotonic clock, less a margin, and by a thread that no call holds up. A process that is stopped as
a whole cannot promise that; the fence is for those who must be sure.
"""

from __future__ import annotations

import secrets
import threading
import time
from types import TracebackType
from typing import Any, Dict, Optional, Type
from urllib.parse import quote

from .errors import ClaimLost, Conflict, IkadaError, NotFound, TimedOut
from .models import to_ms
from .transport import Transport

_WAIT_S = 10.0
# The part of its ttl for which a lease is believed in: clocks differ, and whoever is told needs time to stop.
_TRUSTED = 0.9


class Lease:
    """Taken on entry, renewed while the block runs, given back on exit.

    `fence` rises with every holder: hand it to whatever the lease protects, and have it refuse lower ones. `lost` is set when the lease
    could not be kept.
    """

    def __init__(self, transport: Transport, name: str, *, holder: Optional[str] = None, ttl_s: float = 15.0, wait_s: Optional[float] = None):
        self._transport, self._path = transport, f"/v1/leases/{quote(name, safe='')}"
        self.name, self.holder = name, holder or f"py-{secrets.token_hex(8)}"
        self._ttl_s, self._wait_s = ttl_s, wait_s
        self.fence = 0
        self.lost = threading.Event()
        self._ended = threading.Event()
        self._until = 0.0
        self._renewing: Optional[threading.Thread] = None

    def __enter__(self) -> "Lease":
        deadline = None if self._wait_s is None else time.monotonic() + self._wait_s
        while True:
            left_s = _WAIT_S if deadline is None else max(0.001, min(_WAIT_S, deadline - time.monotonic()))
            body = {"holder": self.holder, "ttl_ms": to_ms(self._ttl_s), "wait_ms": to_ms(left_s)}
            sent = time.monotonic()
            answer: Dict[str, Any] = self._transport.call("POST", f"{self._path}/acquire", body=body, keyed=True, wait_s=left_s).json()
            if answer["state"] == "held":
                self.fence = int(answer["fence"])
                if time.monotonic() - sent <= self._ttl_s / 3:
                    break
                # It was granted during the wait: nobody here knows when.
                sent = time.monotonic()
                try:
                    if self._keeps(self._ttl_s):
                        break
                except IkadaError:
                    # Nobody would renew it, nor give it back.
                    self._release({"holder": self.holder, "fence": str(self.fence)})
                    raise
            if deadline is not None and time.monotonic() >= deadline:
                self._release({"holder": self.holder})
                raise TimedOut(f"lease {self.name} is held by another after {self._wait_s} s", code="timed_out")
        self._until = sent + self._ttl_s * _TRUSTED
        self._renewing = threading.Thread(target=self._renew, name=f"ikada-lease-{self.name}", daemon=True)
        self._renewing.start()
        threading.Thread(target=self._watch, name=f"ikada-lease-{self.name}-time", daemon=True).start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]) -> None:
        self._ended.set()
        if self._renewing is not None:
            self._renewing.join()
        if not self.lost.is_set():
            self._release({"holder": self.holder, "fence": str(self.fence)})

    def check(self) -> None:
        """Raises `ClaimLost` if the lease could not be kept."""
        if self.lost.is_set() or time.monotonic() >= self._until:
            self.lost.set()
            raise ClaimLost(f"lease {self.name} is lost", code="lease_lost")

    def _keeps(self, timeout_s: float) -> bool:
        """Renews; says whether it is still ours."""
        try:
            body = {"holder": self.holder, "fence": str(self.fence)}
            self._transport.call("POST", f"{self._path}/renew", body=body, timeout_s=timeout_s)
        except (Conflict, NotFound):
            return False
        return True

    def _renew(self) -> None:
        while not self._ended.wait(self._ttl_s / 3) and not self.lost.is_set():
            asked = time.monotonic()
            try:
                if not self._keeps(max(0.1, self._until - asked)):
                    self.lost.set()
            except IkadaError:
                # Nobody knows: the time that is left counts.
                continue
            # An answer that comes after the end, as to a process that was stopped, is worth nothing.
            if time.monotonic() < self._until:
                self._until = asked + self._ttl_s * _TRUSTED

    def _watch(self) -> None:
        """Sets `lost` in time, whatever a renewal is waiting for."""
        while not self._ended.wait(max(0.0, self._until - time.monotonic())):
            if self.lost.is_set() or time.monotonic() >= self._until:
                self.lost.set()
                return

    def _release(self, body: Dict[str, Any]) -> None:
        try:
            self._transport.call("POST", f"{self._path}/release", body=body, keyed=True)
        except IkadaError:
            # It ends by itself after its ttl.
            return
