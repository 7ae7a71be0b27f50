"""The pages of one service over HTTP: how it is doing, what it runs with, how it came to that, and its objects."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

from aiohttp import web

from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import Views
from isvc.dashboard.pages.addressed import OBJECT, SERVICE, addressed_namespace, addressed_resource, addressed_service
from isvc.dashboard.pages.live import Event, stream
from isvc.dashboard.pages.rendering import Page, render, respond
from isvc.dashboard.views.history import history_page
from isvc.dashboard.views.rows import row
from isvc.dashboard.views.secrets import presentable
from isvc.dashboard.views.service import ServicePage, service_page
from isvc.insight.diagnosis.gather import explain
from isvc.insight.operations import NotPossible
from isvc.insight.operations.history import read_history
from isvc.insight.rendering.effective import MERGED, effective
from isvc.kube.go_yaml import dump
from isvc.kube.masking import mask_field
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import Resource
from isvc.programs.options import Options
from isvc.serving.refused import Refused
from isvc.toolkit.failure import ClusterError

COALESCE: Final = 0.5  # seconds
REST: Final = 4  # times as long as the last look took


class ServicePages:
    def __init__(self, views: Views) -> None:
        self._views = views

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(SERVICE, self._service),
            web.get(SERVICE + "/live", self._live),
            web.get(SERVICE + "/configuration", self._configuration),
            web.get(SERVICE + "/history", self._history),
            web.get(OBJECT, self._object),
        ]

    async def _service(self, request: web.Request) -> web.Response:
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            found = await _service_page(view, resource, service)
            return respond(request, page_of(view, resource, service, "service.html", found))

    async def _live(self, request: web.Request) -> web.StreamResponse:
        async with self._views.use(request) as view:
            addressed_service(view, request)
            return await stream(request, service_events(view, request))

    async def _configuration(self, request: web.Request) -> web.Response:
        """Shows the effective spec, with the source of each field."""
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            if resource not in MERGED:
                raise NotPossible(f"nothing is merged for a {resource.kind}")
            try:
                fields = await effective(view.client, resource, service, Options())
            except Refused as error:
                raise NotPossible(error.message) from None
            rows = [mask_field(field._asdict()) for field in fields]
            return respond(request, page_of(view, resource, service, "configuration.html", rows))

    async def _history(self, request: web.Request) -> web.Response:
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            found = history_page(await read_history(view.client, resource, service))
            return respond(request, page_of(view, resource, service, "history.html", found))

    async def _object(self, request: web.Request) -> web.Response:
        resource = addressed_resource(request)
        async with self._views.use(request) as view:
            obj = await view.client.get(resource, request.match_info["name"], addressed_namespace(request))
        fit = presentable(resource.typed(obj))
        more = {"yaml": dump(fit), "kind": resource.kind, "managed": _managers(obj)}
        return respond(request, Page("object.html", f"{resource.kind} {name_of(obj)}", fit, around=more))


def page_of(view: ClusterView, resource: Resource, service: Object, template: str, shown: Any) -> Page:
    return Page(template, name_of(service), shown, around=page_header(view, resource, service))


def page_header(view: ClusterView, resource: Resource, service: Object) -> dict[str, Any]:
    """Returns what the head of all pages of a service shows."""
    found = row(resource, service, None)
    head = view.rows.get(found.place, found)
    return {"head": head, "merged": resource in MERGED, "lost_since": view.reachability.lost_since}


async def service_events(view: ClusterView, request: web.Request) -> AsyncGenerator[Event, None]:
    """Yields the page anew whenever something in its namespace has changed it."""
    changes = view.changes_in(addressed_namespace(request))
    before: tuple[ServicePage | None, str] = None, ""
    while True:
        count, started = changes.count, view.clock.monotonic()
        try:
            resource, service = addressed_service(view, request)
        except web.HTTPNotFound:
            yield Event("page", render("gone.html"))
            yield Event("gone", "")
            return
        lost = view.reachability.lost_since
        try:
            now: ServicePage | None = await _service_page(view, resource, service)
        except ClusterError:  # the page stays as it is
            now = before[0]
        if now is not None and (now, lost) != before:
            yield Event("page", render("service_body.html", shown=now, **page_header(view, resource, service)))
        before = now, lost
        rest = REST * (view.clock.monotonic() - started)
        await changes.since(count)
        await view.clock.sleep(max(COALESCE, rest))


async def _service_page(view: ClusterView, resource: Resource, service: Object) -> ServicePage:
    evidence = await view.evidence(service)
    return service_page(resource, evidence, await explain(view.client, evidence))


def _managers(obj: Object) -> list[str]:
    """Returns who wrote the object, which pages show in place of managedFields."""
    fields = obj.get("metadata", {}).get("managedFields") or ()
    return sorted({f"{each.get('manager')} ({each.get('operation')})" for each in fields})
