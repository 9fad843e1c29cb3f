"""What can go wrong, sorted by what the caller can do about it.

*Refused*: decided, for good. *Unavailable*: it did not happen through this request; try later. *UnknownOutcome*: it may or may not
have happened; the same request id asks again safely.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional


class IkadaError(Exception):
    """Anything that a cluster, or the way to it, said."""

    def __init__(self, detail: str, *, code: str = "", status: int = 0, field: Optional[str] = None, request: Optional[str] = None):
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.status = status
        self.field = field
        self.request = request

    def __str__(self) -> str:
        return f"{self.detail} ({self.code})" if self.code else self.detail


class Refused(IkadaError):
    """Decided, for good: sending it again changes nothing."""


class NotFound(Refused):
    """There is no such thing; finished tasks go after their retention time."""


class Conflict(Refused):
    """It stands against what is there: another body under the same id, a finished task, a lost claim."""


class Unavailable(IkadaError):
    """It did not happen through this request: no leader, overload, or no node that answers."""


class UnknownOutcome(IkadaError):
    """It may or may not have happened. `request` names it: `Client.request_outcome` tells, once the cluster can be reached."""


class TimedOut(IkadaError):
    """A wait for a result was over first. The task goes on."""


class TaskFailed(IkadaError):
    """The task is dead or cancelled, so there is no result."""


class ClaimLost(IkadaError):
    """Another attempt has taken over, or the task was cancelled: whatever this one does no longer counts."""


class Retry(Exception):
    """Raised by a handler: this attempt failed; try again after `delay_s`, or after the task's backoff."""

    def __init__(self, reason: str = "the handler asked for another attempt", *, delay_s: Optional[float] = None):
        super().__init__(reason)
        self.delay_s = delay_s


class Fatal(Exception):
    """Raised by a handler: trying again is pointless. The task is dead at once."""


def from_problem(status: int, problem: Mapping[str, Any], request: Optional[str] = None) -> IkadaError:
    """The error for a problem document."""
    code = str(problem.get("code", ""))
    kind: type[IkadaError] = Refused
    if status == 504:
        kind = UnknownOutcome
    elif status in (429, 503):
        # A node that names no time to come back says that none helps; what stands between may say nothing at all.
        is_final = code == "namespace_objects_full" or (bool(code) and problem.get("retry_after_s") is None)
        kind = Refused if is_final else Unavailable
    elif status == 404:
        kind = NotFound
    elif status in (409, 412):
        kind = Conflict
    elif status >= 500 and status != 507:
        kind = UnknownOutcome
    detail = str(problem.get("detail") or problem.get("title") or f"the node answered {status}")
    return kind(detail, code=code, status=status, field=problem.get("field"), request=problem.get("request") or request)
