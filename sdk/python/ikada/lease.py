"""A lease as a `with` block: a lock that ends by itself when its holder does."""

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
        self._renewing: Optional[threading.Thread] = None

    def __enter__(self) -> "Lease":
        deadline = None if self._wait_s is None else time.monotonic() + self._wait_s
        while True:
            left_s = _WAIT_S if deadline is None else max(0.001, min(_WAIT_S, deadline - time.monotonic()))
            body = {"holder": self.holder, "ttl_ms": to_ms(self._ttl_s), "wait_ms": to_ms(left_s)}
            answer: Dict[str, Any] = self._transport.call("POST", f"{self._path}/acquire", body=body, keyed=True, wait_s=left_s).json()
            if answer["state"] == "held":
                break
            if deadline is not None and time.monotonic() >= deadline:
                self._release({"holder": self.holder})
                raise TimedOut(f"lease {self.name} is held by another after {self._wait_s} s", code="timed_out")
        self.fence = int(answer["fence"])
        self._renewing = threading.Thread(target=self._renew, name=f"ikada-lease-{self.name}", daemon=True)
        self._renewing.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]) -> None:
        self._ended.set()
        if self._renewing is not None:
            self._renewing.join()
        if not self.lost.is_set():
            self._release({"holder": self.holder, "fence": str(self.fence)})

    def check(self) -> None:
        """Raises `ClaimLost` if the lease could not be kept."""
        if self.lost.is_set():
            raise ClaimLost(f"lease {self.name} is lost", code="lease_lost")

    def _renew(self) -> None:
        renewed = time.monotonic()
        while not self._ended.wait(self._ttl_s / 3):
            asked = time.monotonic()
            try:
                body = {"holder": self.holder, "fence": str(self.fence)}
                self._transport.call("POST", f"{self._path}/renew", body=body, timeout_s=max(0.1, renewed + self._ttl_s - asked))
                renewed = asked
            except (Conflict, NotFound):
                self.lost.set()
                return
            except IkadaError:
                if time.monotonic() - renewed >= self._ttl_s:
                    self.lost.set()
                    return

    def _release(self, body: Dict[str, Any]) -> None:
        try:
            self._transport.call("POST", f"{self._path}/release", body=body, keyed=True)
        except IkadaError:
            # It ends by itself after its ttl.
            return
