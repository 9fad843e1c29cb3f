"""How long a lease is believed in, against a cluster that does not answer, or answers late (LS-6)."""

from __future__ import annotations

import threading
import time
import unittest
from typing import Any, Callable, Dict, cast

from ikada.errors import ClaimLost, Conflict, Unavailable
from ikada.lease import Lease
from ikada.transport import Answer, Transport

_TTL_S = 0.6


class Cluster:
    """Grants at once; what becomes of a renewal is the test's own."""

    def __init__(self, renew: Callable[[], None], acquire: Callable[[], None] = lambda: None):
        self._renew, self._acquire = renew, acquire
        self.calls: Dict[str, int] = {}

    def call(self, _method: str, path: str, **_rest: Any) -> Answer:
        verb = path.rsplit("/", 1)[1]
        self.calls[verb] = self.calls.get(verb, 0) + 1
        if verb == "renew":
            self._renew()
        if verb == "acquire":
            self._acquire()
        return Answer(200, {}, b'{"state": "held", "fence": "7"}')


def lease(cluster: Cluster, ttl_s: float = _TTL_S) -> Lease:
    return Lease(cast(Transport, cluster), "l", ttl_s=ttl_s)


class LeaseTest(unittest.TestCase):
    def test_ls_6_a_renewal_that_hangs_does_not_keep_a_lease(self) -> None:
        go_on = threading.Event()

        def hang() -> None:
            go_on.wait(30)

        with lease(Cluster(hang)) as held:
            self.assertTrue(held.lost.wait(20), "it waits for a call that never ends")
            with self.assertRaises(ClaimLost):
                held.check()
            go_on.set()

    def test_ls_6_an_answer_after_the_end_is_worth_nothing(self) -> None:
        held = lease(Cluster(lambda: None), 60)
        with held:
            held._until = time.monotonic()
            with self.assertRaises(ClaimLost):
                held.check()
        self.assertTrue(held.lost.is_set())

    def test_ls_6_renewals_keep_it_and_a_refusal_ends_it(self) -> None:
        refuse = threading.Event()

        def renew() -> None:
            if refuse.is_set():
                raise Conflict("it is another's", code="stale_fence")

        cluster = Cluster(renew)
        with lease(cluster, 4) as held:
            while cluster.calls.get("renew", 0) < 4 and not held.lost.wait(0.05):
                pass
            self.assertFalse(held.lost.is_set(), "renewals keep it beyond its ttl")
            refuse.set()
            self.assertTrue(held.lost.wait(20))
        self.assertNotIn("release", cluster.calls, "it is not ours to give back")

    def test_ls_6_a_grant_after_a_wait_is_renewed_before_it_counts(self) -> None:
        waits = [_TTL_S, 0.0]
        refusals = [True]

        def renew() -> None:
            if refusals and refusals.pop():
                raise Conflict("it was another's again", code="stale_fence")

        cluster = Cluster(renew, lambda: time.sleep(waits.pop(0)))
        with lease(cluster):
            self.assertEqual(cluster.calls["acquire"], 2, "what was lost meanwhile is asked for again")

    def test_ls_6_a_grant_that_cannot_be_renewed_is_given_back(self) -> None:
        def renew() -> None:
            raise Unavailable("no leader", code="unavailable")

        cluster = Cluster(renew, lambda: time.sleep(_TTL_S))
        with self.assertRaises(Unavailable):
            lease(cluster).__enter__()
        self.assertEqual(cluster.calls.get("release"), 1, "nobody would renew it")


if __name__ == "__main__":
    unittest.main()
