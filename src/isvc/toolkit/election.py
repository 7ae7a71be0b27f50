"""One leader among replicas, by a Lease, with client-go's rules and times, so that both can share a lease.

A leader may act only while its last renewal is younger than the renew deadline, measured from before the renewal was
sent, on a clock that does not stop with the process. Others may take over only when the lease has not changed for the
longer lease duration. So a leader that was paused finds, before its next write, that it may not write.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Callable

from isvc.kube.errors import ApiError, Conflict, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import LEASES
from isvc.kube.timestamps import micro_timestamp
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.failure import ClusterError, NotLeader

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
RENEW_SECONDS = 10.0
RETRY_SECONDS = 2.0


class Election:
    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        *,
        identity: str = "",
        lease_seconds: float = LEASE_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        assert lease_seconds > renew_seconds > retry_seconds
        self.name = name
        self.namespace = namespace
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self.on_change: Callable[[bool], None] = lambda leading: None
        self._client = client.without_fence()
        self._lease_seconds, self._renew_seconds, self._retry_seconds = lease_seconds, renew_seconds, retry_seconds
        self._clock = clock or SystemClock()
        self._lease: Object | None = None
        self._observed = ("", "")  # holder and renewTime, as last seen,
        self._observed_at = 0.0  # and when they changed, by our own clock: clocks of others are not trusted
        self._renewed_at: float | None = None
        self._problem = ""

    def holds(self) -> bool:
        """Returns whether we may act at this very moment."""
        return self._renewed_at is not None and self._clock.monotonic() < self._renewed_at + self._renew_seconds

    def check(self) -> None:
        if not self.holds():
            raise NotLeader(f"not the leader: the lease {self.namespace}/{self.name} is not ours, or has passed")

    async def acquire(self) -> None:
        """Waits until we lead."""
        log.info("waiting for the lease %s/%s", self.namespace, self.name)
        while not await self._attempt(self._renew_seconds):
            await self._clock.sleep(self._retry_seconds * random.uniform(1, 1.2))  # noqa: S311 - spreads attempts
        log.info("leading: %s holds the lease %s/%s", self.identity, self.namespace, self.name)
        self.on_change(True)

    async def hold(self) -> None:
        """Renews for as long as it goes; raises NotLeader when it does not any more."""
        try:
            while True:
                await self._clock.sleep(self._retry_seconds)
                assert self._renewed_at is not None
                left = self._renewed_at + self._renew_seconds - self._clock.monotonic()
                if left <= 0 or (not await self._attempt(left) and not self.holds()):
                    raise NotLeader(f"the lease {self.namespace}/{self.name} was lost{self._to_another()}")
        finally:
            self.on_change(False)

    def _to_another(self) -> str:
        """Returns to whom the lease was lost, as far as that is known."""
        holder = self._observed[0]
        return f" to {holder}" if holder not in ("", self.identity) else ""

    async def release(self) -> None:
        """Lets another take over at once; we must have stopped acting."""
        if not self.holds() or self._lease is None:
            return
        self._renewed_at = None
        spec = self._lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
        spec["renewTime"] = spec["acquireTime"] = micro_timestamp(self._clock.now())
        try:
            async with asyncio.timeout(self._retry_seconds):
                await self._client.update(LEASES, self._lease | {"spec": spec})
            log.info("released the lease %s/%s", self.namespace, self.name)
        except (ApiError, ClusterError, TimeoutError) as error:
            log.warning("the lease %s/%s was not released: %s", self.namespace, self.name, error)

    async def _attempt(self, within: float) -> bool:
        """Acquires or renews, once. A failure to reach the server is no more than a missed attempt."""
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(within):
                if not await self._acquire_or_renew():
                    self._renewed_at = None
                    return False
        except Conflict:
            self._lease = None  # another replica was faster; look again
            return False
        except (ApiError, ClusterError, TimeoutError) as error:
            self._warn(str(error) or "no answer in time")
            self._lease = None
            return False
        self._renewed_at, self._problem = started, ""
        return True

    def _warn(self, problem: str) -> None:
        """Logs a problem once, not at every attempt."""
        if problem != self._problem:
            self._problem = problem
            log.warning("waiting for the lease %s/%s: %s", self.namespace, self.name, problem)

    async def _acquire_or_renew(self) -> bool:
        if not self.holds() or self._lease is None:
            try:
                self._lease = await self._client.get(LEASES, self.name, self.namespace)
            except NotFound:
                self._see(await self._client.create(LEASES, self._manifest()))
                return True
            self._see(self._lease)
            if not self._free(self._lease):
                return False
        self._see(await self._client.update(LEASES, self._lease | {"spec": self._spec(self._lease["spec"])}))
        return True

    def _see(self, lease: Object) -> None:
        self._lease = lease
        spec = lease.get("spec") or {}
        observed = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
        if observed != self._observed:
            self._observed, self._observed_at = observed, self._clock.monotonic()

    def _free(self, lease: Object) -> bool:
        holder = self._observed[0]
        duration = float((lease.get("spec") or {}).get("leaseDurationSeconds") or self._lease_seconds)
        return holder in ("", self.identity) or self._clock.monotonic() > self._observed_at + duration

    def _spec(self, before: Object | None) -> Object:
        before = before or {}
        now = micro_timestamp(self._clock.now())
        ours = before.get("holderIdentity") == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._lease_seconds)),
            "acquireTime": before.get("acquireTime", now) if ours else now,
            "renewTime": now,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if ours or not before else 1),
        }

    def _manifest(self) -> Object:
        return LEASES.manifest({"name": self.name, "namespace": self.namespace}, spec=self._spec(None))
