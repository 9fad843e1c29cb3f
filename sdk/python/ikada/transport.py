"""HTTP to any node of a cluster: kept connections, other nodes when one is gone, resends under the same request id.

Promises: a change that is sent again carries the same `Idempotency-Key`, so it happens at most once; a call ends by its time limit; the
last word after many tries is *unavailable* if no node can have carried it out, *unknown* otherwise. Safe to use from many threads.
"""

from __future__ import annotations

import http.client
import json
import random
import secrets
import ssl
import threading
import time
from typing import Any, BinaryIO, Dict, List, Mapping, Optional, Tuple, Union
from urllib.parse import urlencode, urlsplit

from .errors import Conflict, IkadaError, Unavailable, UnknownOutcome, from_problem
from .models import encode

_IDLE_MAX = 16
_NODE_TIMEOUT_MAX_S = 120.0
_PAUSE_FIRST_S, _PAUSE_MAX_S = 0.05, 1.0
_GRACE_S = 2.0
_PIECE_BYTES = 1 << 20


class Answer:
    """A response, read to its end."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    def json(self) -> Any:
        """The document."""
        return json.loads(self.body) if self.body else None


class Transport:
    """Calls nodes."""

    def __init__(self, urls: Union[str, List[str]], *, token: Optional[str] = None, namespace: Optional[str] = None,
                 timeout_s: float = 30.0, ca_file: Optional[str] = None):
        listed = urls.split(",") if isinstance(urls, str) else list(urls)
        self._urls = [url.strip().rstrip("/") for url in listed if url.strip()]
        if not self._urls:
            raise ValueError("name at least one address, such as http://127.0.0.1:7400")
        for url in self._urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise ValueError(f"{url!r} is no address such as http://127.0.0.1:7400")
        self.timeout_s = timeout_s
        self._headers: Dict[str, str] = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token.strip()}"
        if namespace:
            self._headers["Ikada-Namespace"] = namespace
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._lock = threading.Lock()
        self._idle: Dict[str, List[http.client.HTTPConnection]] = {}
        self._at = random.randrange(len(self._urls))

    def close(self) -> None:
        """Closes connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connection in (one for several in idle.values() for one in several):
            connection.close()

    def call(self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, body: Any = None, raw: Any = None,
             headers: Optional[Mapping[str, str]] = None, keyed: bool = False, request: Optional[str] = None,
             timeout_s: Optional[float] = None, wait_s: float = 0.0) -> Answer:
        """Asks until there is an answer that settles it, or the time is over.

        `keyed` sends a request id, drawn here unless `request` names one. `wait_s` is time that the node may wait on purpose.
        """
        limit_s = (self.timeout_s if timeout_s is None else timeout_s) + wait_s
        deadline = time.monotonic() + limit_s
        if keyed and request is None:
            request = f"py-{secrets.token_hex(12)}"
        sent = dict(self._headers, **(headers or {}))
        payload = raw
        if body is not None:
            payload, sent["Content-Type"] = encode(body), "application/json"
        if request is not None:
            sent["Idempotency-Key"] = request
        pairs = {name: value for name, value in (query or {}).items() if value is not None}
        target = f"{path}?{urlencode(pairs)}" if pairs else path
        last: Optional[Exception] = None
        pause_s, reached = _PAUSE_FIRST_S, False
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise _last_word(last, reached, request, limit_s)
            sent["Ikada-Timeout-Ms"] = str(max(1, int(min(left_s, _NODE_TIMEOUT_MAX_S) * 1000)))
            try:
                answer = self._once(method, target, payload, sent, min(left_s, _NODE_TIMEOUT_MAX_S) + _GRACE_S)
            except ssl.SSLCertVerificationError as error:
                raise _untrusted(error) from error
            except (OSError, http.client.HTTPException) as error:
                last, refused = error, isinstance(error, ConnectionRefusedError)
                reached = reached or not refused
                self._next()
            else:
                if answer.status < 400:
                    return answer
                problem = from_problem(answer.status, _document(answer), request)
                if not isinstance(problem, (Unavailable, UnknownOutcome)) or answer.status == 500:
                    raise problem
                last, reached = problem, reached or isinstance(problem, UnknownOutcome)
                if isinstance(problem, Unavailable) and problem.code in ("queue_full", "dead_full", "too_many_queues"):
                    raise problem
                self._next()
            if not _may_resend(method, raw):
                raise _last_word(last, reached, request, limit_s)
            time.sleep(min(pause_s * random.uniform(0.5, 1.0), max(0.0, deadline - time.monotonic())))
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)

    def save(self, path: str, *, query: Optional[Mapping[str, Any]] = None, sink: BinaryIO) -> int:
        """Writes what is at a path into a file as it comes; gives the number of bytes.

        What breaks off is gone on with at another node, as long as it is the same version. `timeout_s` bounds the silence, not the whole.
        """
        pairs = {name: value for name, value in (query or {}).items() if value is not None}
        target = f"{path}?{urlencode(pairs)}" if pairs else path
        done, tag, pause_s = 0, None, _PAUSE_FIRST_S
        deadline = time.monotonic() + self.timeout_s
        while True:
            headers = dict(self._headers, Accept="*/*", **{"Ikada-Timeout-Ms": str(int(_NODE_TIMEOUT_MAX_S * 1000))})
            if done:
                headers["Range"] = f"bytes={done}-"
            connection = self._connect(self._urls[self._at], self.timeout_s + _GRACE_S)
            last: Exception = OSError("the download broke off")
            try:
                connection.request("GET", target, headers=headers)
                response = connection.getresponse()
                if response.status >= 400:
                    last = from_problem(response.status, _document(Answer(response.status, dict(response.getheaders()), response.read())))
                    if not isinstance(last, (Unavailable, UnknownOutcome)) or response.status == 500:
                        raise last
                else:
                    if done and (response.status != 206 or response.getheader("ETag") != tag):
                        raise Conflict("the object was written anew while it was read", code="object_changed")
                    tag = response.getheader("ETag")
                    while piece := response.read(_PIECE_BYTES):
                        sink.write(piece)
                        done, deadline, pause_s = done + len(piece), time.monotonic() + self.timeout_s, _PAUSE_FIRST_S
                    if not response.length:
                        return done
            except ssl.SSLCertVerificationError as error:
                raise _untrusted(error) from error
            except (OSError, http.client.HTTPException) as error:
                last = error
            finally:
                connection.close()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise _last_word(last, False, None, self.timeout_s)
            self._next()
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)

    def _next(self) -> None:
        with self._lock:
            self._at = (self._at + 1) % len(self._urls)

    def _once(self, method: str, target: str, payload: Any, headers: Mapping[str, str], timeout_s: float) -> Answer:
        url = self._urls[self._at]
        connection, is_fresh = self._take(url, timeout_s)
        try:
            return self._exchange(url, connection, method, target, payload, headers)
        except (ConnectionError, http.client.HTTPException):
            # A kept connection may have been closed while it lay idle; that says nothing about the node.
            if is_fresh or not _may_resend(method, payload):
                raise
        return self._exchange(url, self._connect(url, timeout_s), method, target, payload, headers)

    def _exchange(self, url: str, connection: http.client.HTTPConnection, method: str, target: str, payload: Any,
                  headers: Mapping[str, str]) -> Answer:
        try:
            try:
                connection.request(method, target, body=payload, headers=dict(headers))
            except (BrokenPipeError, ConnectionResetError):
                # A node may answer before it has read a large body, say to refuse it. The answer is worth more than the broken pipe.
                if connection.sock is None:
                    raise
            response = connection.getresponse()
            body = response.read()
        except BaseException:
            connection.close()
            raise
        self._give_back(url, connection, response)
        return Answer(response.status, dict(response.getheaders()), body)

    def _take(self, url: str, timeout_s: float) -> Tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            idle = self._idle.get(url)
            connection = idle.pop() if idle else None
        if connection is None:
            return self._connect(url, timeout_s), True
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection, False

    def _connect(self, url: str, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, parts.port or 443, timeout=timeout_s, context=self._tls)
        return http.client.HTTPConnection(host, parts.port or 80, timeout=timeout_s)

    def _give_back(self, url: str, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        with self._lock:
            idle = self._idle.setdefault(url, [])
            if not response.will_close and len(idle) < _IDLE_MAX:
                idle.append(connection)
                return
        connection.close()


def _may_resend(method: str, raw: Any) -> bool:
    """Changes carry a request id or a fence; only a body that was read away cannot be sent again."""
    return method in ("GET", "HEAD") or raw is None or isinstance(raw, (bytes, bytearray))


def _document(answer: Answer) -> Dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _untrusted(error: ssl.SSLCertVerificationError) -> Unavailable:
    """Nothing was sent, and trying again cannot help."""
    return Unavailable(f"the node's certificate is not trusted ({error.verify_message}); name the cluster's tls/ca.pem as ca_file", code="untrusted")


def _last_word(last: Optional[Exception], reached: bool, request: Optional[str], limit_s: float) -> IkadaError:
    if isinstance(last, IkadaError) and not (reached and isinstance(last, Unavailable)):
        return last
    why = f"no answer within {limit_s:.1f} s: {last or 'the time was too short'}"
    return UnknownOutcome(why, code="unknown", request=request) if reached else Unavailable(why, code="unreachable", request=request)
