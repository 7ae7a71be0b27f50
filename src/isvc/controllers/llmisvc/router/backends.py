"""Where rules of a managed route lead: the inference pool, a pool of the user's, or the workload's Service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isvc.kube.objects import Object, dig
from isvc.serving.llm import names
from isvc.serving.thirdparty import GATEWAYS

POOL = "InferencePool"
SERVICE = "Service"
PORT = 8000


def with_backends(spec: Object, name: str) -> Object:
    """Returns the merged spec with its route attached to its gateways, and leading where there is somebody.

    Presets write routes to the service's own pool. Without a scheduler there is none, and with a pool of the user's
    it is that one. Backends that are not the preset's stay.
    """
    route = dig(spec, "router", "route", "http", "spec")
    if route is None:
        return spec
    if gateways := dig(spec, "router", "gateway", "refs"):
        route = {**route, "parentRefs": [_parent(reference) for reference in gateways]}
    if (scheduler := dig(spec, "router", "scheduler")) is None:
        service = {"group": "", "kind": SERVICE, "name": names.workload_service(name)}
        route = edit_pool_backends(route, name, service)
    elif pool := pool_reference(scheduler):
        route = edit_pool_backends(route, name, {"name": pool})
    http = {**spec["router"]["route"]["http"], "spec": route}
    return {**spec, "router": {**spec["router"], "route": {**spec["router"]["route"], "http": http}}}


def pool_reference(scheduler: Any) -> str:
    """Returns the name of the user's own pool, or "" where the pool is ours."""
    return str(dig(scheduler, "pool", "ref", "name") or "")


def is_own_pool(backend: Object, name: str) -> bool:
    """Returns whether a backend is the service's own pool, of whichever API group."""
    return backend.get("kind") == POOL and backend.get("name") == names.inference_pool(name)


def edit_pool_backends(route: Object, name: str, change: Object) -> Object:
    """Returns the route's spec with each backend that is the service's own pool changed."""
    return edit_backends(route, lambda backend: {**backend, **change} if is_own_pool(backend, name) else backend)


def edit_backends(route: Object, edit: Callable[[Object], Object]) -> Object:
    rules = [
        {**rule, "backendRefs": [edit(backend) for backend in rule["backendRefs"]]} if "backendRefs" in rule else rule
        for rule in route.get("rules") or ()
    ]
    return {**route, "rules": rules} if rules else route


def backends(route: Object) -> Iterator[Object]:
    """Yields all backends of an HTTPRoute."""
    for rule in dig(route, "spec", "rules") or ():
        yield from rule.get("backendRefs") or ()


def _parent(reference: Object) -> Object:
    parent = {"group": GATEWAYS.group, "kind": GATEWAYS.kind, "name": reference.get("name", "")}
    return parent | {key: reference[key] for key in ("namespace", "sectionName") if reference.get(key)}
