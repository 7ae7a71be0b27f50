"""Stop and resume, scale, canary, undo and delete over HTTP. There are no such routes unless editing is allowed."""

from __future__ import annotations

from aiohttp import web

from isvc.api.annotations import is_stopped
from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import Views
from isvc.dashboard.pages.addressed import SERVICE, addressed_service
from isvc.dashboard.pages.rendering import Page, respond
from isvc.dashboard.pages.service import page_of
from isvc.insight.operations import NotPossible, edits
from isvc.insight.operations.edits import Edit
from isvc.insight.operations.history import read_history
from isvc.insight.rendering.effective import MERGED
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import Resource


class EditPages:
    def __init__(self, views: Views) -> None:
        self._views = views

    def routes(self) -> list[web.RouteDef]:
        return [web.get(SERVICE + "/edit", self._forms), web.post(SERVICE + "/edit", self._edit)]

    async def _forms(self, request: web.Request) -> web.Response:
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            shown = {
                "stopped": is_stopped(service),
                "replicas": _replicas(service),
                "canary": edits.canary_share(service),
                "merged": resource in MERGED,
                "kubectl": {
                    "stop": edits.stop(resource, service).kubectl,
                    "resume": edits.resume(resource, service).kubectl,
                    "delete": edits.delete(resource, service, name_of(service)).kubectl,
                },
            }
            return respond(request, page_of(view, resource, service, "edit.html", shown))

    async def _edit(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            edit = await _requested_edit(view, resource, service, form)
            await edits.make_edit(view.client, resource, service, edit)
            shown = {"done": edit.says, "kubectl": edit.kubectl}
            return respond(
                request, Page("edited.html", "Done", shown, around={"back": request.path.removesuffix("/edit")})
            )


async def _requested_edit(view: ClusterView, resource: Resource, service: Object, form: dict[str, str]) -> Edit:
    match form.get("action"):
        case "stop":
            return edits.stop(resource, service)
        case "resume":
            return edits.resume(resource, service)
        case "scale":
            return edits.scale(resource, service, _number(form, "replicas"))
        case "canary":
            return edits.shift_traffic(resource, service, _number(form, "percent"))
        case "undo":
            fresh = await view.client.get(resource, name_of(service), namespace_of(service))
            return edits.undo(await read_history(view.client, resource, fresh))
        case "delete":
            return edits.delete(resource, service, form.get("confirm", ""))
        case other:
            raise NotPossible(f"there is no action {other!r}")


def _number(form: dict[str, str], name: str) -> int:
    text = form.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 7):
        raise NotPossible(f"{name} has to be a number")
    return int(text)


def _replicas(service: Object) -> int | None:
    found: int | None = dig(service, "spec", "replicas")
    return dig(service, "spec", "predictor", "minReplicas") if found is None else found
