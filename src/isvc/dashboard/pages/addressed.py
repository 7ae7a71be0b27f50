"""Which service or object a request is about."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.views.rows import Place
from isvc.insight.diagnosis.snapshot import reads
from isvc.insight.operations import kinds
from isvc.kube.objects import GVK, Object
from isvc.kube.resource import Resource

SERVICE: Final = "/services/{kind}/{namespace}/{name}"
OBJECT: Final = "/objects/{type}/{namespace}/{name}"
_BY_KIND: Final[dict[GVK, Resource]] = {read.resource.gvk: read.resource for read in reads()}


def addressed_service(view: ClusterView, request: web.Request) -> tuple[Resource, Object]:
    """Returns the service that a request names. Raises 404 for what is not there, any more or at all."""
    matched = request.match_info
    resource = kinds.resource_called(matched["kind"])
    service = view.service(Place(matched["kind"], addressed_namespace(request), matched["name"]))
    if resource is None or service is None:
        raise web.HTTPNotFound
    return resource, service


def addressed_namespace(request: web.Request) -> str:
    """Returns the namespace that a request names, where a dash is none."""
    return request.match_info["namespace"].removeprefix("-")  # no name begins with one


def addressed_resource(request: web.Request) -> Resource:
    """Returns the kind in `/objects/Deployment.v1.apps/…`."""
    kind, _, rest = request.match_info["type"].partition(".")
    version, _, group = rest.partition(".")
    resource = _BY_KIND.get(GVK(group, version, kind))
    if resource is None:
        raise web.HTTPNotFound
    return resource
