"""The addresses of a service in its status, and which of them is its URL."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.controllers.llmisvc.router.models import adapter_names, model_name, qualify
from isvc.controllers.llmisvc.router.urls import Discovered
from isvc.kube.objects import Object
from isvc.serving.hosts import service_host
from isvc.serving.llm import names
from isvc.serving.thirdparty import GATEWAYS


def url_of(found: Sequence[Discovered], namespace: str, name: str, scheme: str) -> str | None:
    """Returns the first of sorted URLs that others can reach and that is under the service's own path.

    Where none can be reached from outside, the configured scheme goes first.
    """
    external = [each for each in found if not each.is_internal]
    candidates = external or list(found)
    own = [each for each in candidates if each.path.startswith(f"/{namespace}/{name}")]
    if not external and (preferred := [each for each in own if each.url.startswith(f"{scheme}://")]):
        own = preferred
    return next((each.url for each in own or candidates), None)


def sourced_addresses(found: Sequence[Discovered], spec: Object, namespace: str, name: str) -> list[Object]:
    return [_address(each, spec, namespace, name) for each in found]


def workload_address(namespace: str, name: str, *, encrypted: bool) -> Object:
    """Returns where a service without a route is reached: at the workload's Service."""
    host = service_host(names.workload_service(name), namespace)
    return {"url": f"{'https' if encrypted else 'http'}://{host}"}


def _address(found: Discovered, spec: Object, namespace: str, name: str) -> Object:
    kind = "gateway-internal" if found.is_cluster_local else "internal" if found.is_internal else "gateway-external"
    models = [model_name(spec, name), *adapter_names(spec)]
    if found.path in ("", "/"):  # here the model's name is all that tells services apart
        kind, answered = f"{kind}-model-routing", [qualify(namespace, model) for model in models]
    else:
        answered = [each for model in models for each in (qualify(namespace, model), model)]
    gateway = {
        "group": GATEWAYS.group,
        "kind": GATEWAYS.kind,
        "name": found.gateway.name,
        "namespace": found.gateway.namespace,
    }
    return {"name": kind, "url": found.url, "origin": gateway, "models": [{"name": each} for each in answered]}
