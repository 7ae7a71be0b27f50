"""Why services are not ready, found in the background by the diagnosis of `isvc explain`.

Only services that somebody has on a page are diagnosed, and at most a part of a core is spent on it: the overview never
waits for a diagnosis, and a cluster where thousands of things change does not keep the dashboard busy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from isvc.dashboard.views.rows import Place
from isvc.insight.diagnosis.diagnose import diagnose
from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.readiness import is_ready
from isvc.toolkit.clock import Clock
from isvc.toolkit.failure import ClusterError

log = logging.getLogger(__name__)

SETTLE: Final = 0.3  # seconds in which several changes become one diagnosis
REST: Final = 4  # times as long as the last round took
MOST_WATCHED: Final = 500


class Causes:
    def __init__(
        self,
        evidence: Callable[[Object], Awaitable[Evidence]],
        service: Callable[[Place], Object | None],
        clock: Clock,
        found: Callable[[Place], None],
    ) -> None:
        """`found` is called when what is known about a service has changed."""
        self._evidence, self._service, self._clock = evidence, service, clock
        self._found = found
        self._findings: dict[Place, list[Finding]] = {}
        self._watched: dict[Place, None] = {}  # what is on a page, the last seen last
        self._due: set[str] = set()  # namespaces in which something changed
        self._wake = asyncio.Event()

    def get(self, place: Place) -> list[Finding] | None:
        return self._findings.get(place)

    def watch(self, places: Iterable[Place]) -> None:
        """Notes that somebody looks at these services now."""
        for place in places:
            if place not in self._watched and place not in self._findings:
                self.diagnose_later(place.namespace)
            self._watched.pop(place, None)
            self._watched[place] = None
        while len(self._watched) > MOST_WATCHED:
            self.forget(next(iter(self._watched)))

    def diagnose_later(self, namespace: str) -> None:
        self._due.add(namespace)
        self._wake.set()

    def forget(self, place: Place) -> None:
        self._watched.pop(place, None)
        self._findings.pop(place, None)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await self._clock.sleep(SETTLE)
            self._wake.clear()
            namespaces, self._due = self._due, set()
            started = self._clock.monotonic()
            for namespace in sorted(namespaces):
                await self._diagnose(namespace)
            await self._clock.sleep(REST * (self._clock.monotonic() - started))

    async def _diagnose(self, namespace: str) -> None:
        for place in [each for each in self._watched if each.namespace == namespace]:
            service = self._service(place)
            if service is None or is_ready(service):
                continue
            try:
                findings = diagnose(await self._evidence(service))
            except (ApiError, ClusterError) as error:
                log.debug("no diagnosis of %s: %s", place.path, error)
                continue
            if self._findings.get(place) != findings:
                self._findings[place] = findings
                self._found(place)
            await asyncio.sleep(0)  # let pages be answered in between
