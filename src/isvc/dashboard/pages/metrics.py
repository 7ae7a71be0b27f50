"""What model servers measure over HTTP. Pods are scraped while somebody looks, and not otherwise."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from aiohttp import web

from isvc.dashboard.cluster.replicas import pods_of_service
from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import Views
from isvc.dashboard.pages.addressed import SERVICE, addressed_service
from isvc.dashboard.pages.live import Event, stream
from isvc.dashboard.pages.rendering import render, respond
from isvc.dashboard.pages.service import page_of
from isvc.dashboard.views.figures import Chart, Sample, charts, sample
from isvc.dashboard.views.rows import Place
from isvc.kube.conditions import is_condition_true
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, annotations_of, dig, name_of, namespace_of, uid_of
from isvc.kube.resource import PODS, Resource
from isvc.toolkit.client import Client
from isvc.toolkit.failure import ClusterError
from isvc.wire.bounded import Bounded

EVERY: Final = 5.0  # seconds between two scrapes
MOST_SAMPLES: Final = 120
MOST_SERVICES: Final = 50
MOST_PODS: Final = 20
LARGEST: Final = 4 << 20
WITHIN: Final = 3.0
_PATH: Final = re.compile(r"/[\w./-]*")


class MetricsPages:
    def __init__(self, views: Views) -> None:
        self._views = views
        self._samples: Bounded[tuple[int, str], deque[Sample]] = Bounded(MOST_SERVICES)  # of a view and a service

    def routes(self) -> list[web.RouteDef]:
        return [web.get(SERVICE + "/metrics", self._metrics), web.get(SERVICE + "/metrics/live", self._live)]

    async def _metrics(self, request: web.Request) -> web.Response:
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            found = await self._charts(view, resource, service)
            return respond(request, page_of(view, resource, service, "metrics.html", found))

    async def _live(self, request: web.Request) -> web.StreamResponse:
        async with self._views.use(request) as view:
            addressed_service(view, request)
            return await stream(request, self._events(view, request))

    async def _events(self, view: ClusterView, request: web.Request) -> AsyncGenerator[Event, None]:
        while True:
            await view.clock.sleep(EVERY)
            try:
                resource, service = addressed_service(view, request)
            except web.HTTPNotFound:
                yield Event("charts", render("gone.html"))
                yield Event("gone", "")
                return
            yield Event("charts", render("charts.html", shown=await self._charts(view, resource, service)))

    async def _charts(self, view: ClusterView, resource: Resource, service: Object) -> tuple[Chart, ...]:
        samples = await self._latest_samples(view, service)
        return charts(samples, view.replicas.of(Place.of(resource, service)), view.clock.monotonic())

    async def _latest_samples(self, view: ClusterView, service: Object) -> list[Sample]:
        """Returns the samples so far, with one of now unless somebody else has just taken it."""
        key = (id(view), uid_of(service))
        samples = self._samples[key] = self._samples.get(key) or deque(maxlen=MOST_SAMPLES)
        if not samples or view.clock.monotonic() - samples[-1].time > EVERY - 1:
            samples.append(await _take_sample(view, service))
        return list(samples)


async def _take_sample(view: ClusterView, service: Object) -> Sample:
    ready = [pod for pod in pods_of_service(view.cache, service) if is_condition_true(pod, "Ready")]
    texts = await asyncio.gather(*(_scrape(view.client, pod) for pod in ready[:MOST_PODS]))
    return sample(view.clock.monotonic(), filter(None, texts))


async def _scrape(client: Client, pod: Object) -> str:
    """Reads a pod's metrics through the API server, which decides whether this user may. Empty if it has none."""
    container: Object = (dig(pod, "spec", "containers") or [{}])[0]
    noted = annotations_of(pod)
    named = noted.get("prometheus.kserve.io/port") or noted.get("prometheus.io/port")
    path = noted.get("prometheus.kserve.io/path") or noted.get("prometheus.io/path") or ""
    path = path if _PATH.fullmatch(path) and ".." not in path else "/metrics"
    scheme = str(dig(container, "readinessProbe", "httpGet", "scheme") or "HTTP").lower()
    found: list[bytes] = []
    size = 0
    try:
        port = int(named or dig(container, "ports", 0, "containerPort") or 8080)
        proxy = PODS.path(namespace_of(pod), f"{scheme}:{name_of(pod)}:{port}", "proxy")
        async with asyncio.timeout(WITHIN), aclosing(client.lines(proxy + path)) as lines:
            async for line in lines:
                found.append(line)
                size += len(line)
                if size > LARGEST:  # servers that mean well do not expose as much
                    break
    except (TimeoutError, ApiError, ClusterError, ValueError):
        return ""
    return b"\n".join((*found, b"")).decode(errors="replace")
