"""Client and worker for an Ikada cluster.

State transitions happen exactly once; your code runs at least once, and a stale attempt can never publish its result.
"""

from .aio import AsyncClient, AsyncLease
from .app import App, BoundTask
from .client import Client
from .context import TaskContext, current
from .errors import (
    ClaimLost,
    Conflict,
    Fatal,
    IkadaError,
    NotFound,
    Refused,
    Retry,
    TaskFailed,
    TimedOut,
    Unavailable,
    UnknownOutcome,
)
from .handle import Handle
from .jobs import Job, JobResult
from .lease import Lease
from .models import Attempt, ClaimedTask, NewTask, ObjectInfo, Outcome, Task
from .worker import Worker

__all__ = [
    "App", "AsyncClient", "AsyncLease", "Attempt", "BoundTask", "ClaimLost", "ClaimedTask", "Client", "Conflict", "Fatal", "Handle",
    "IkadaError", "Job", "JobResult", "Lease", "NewTask", "NotFound", "ObjectInfo", "Outcome", "Refused", "Retry", "Task", "TaskContext", "TaskFailed",
    "TimedOut", "Unavailable", "UnknownOutcome", "Worker", "current",
]

__version__ = "0.1.0"
