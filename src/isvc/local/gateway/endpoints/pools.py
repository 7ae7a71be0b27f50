"""The members of an InferencePool: pods that its selector finds, and the port of this machine that each answers on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from isvc.kube.objects import Object, dig, is_being_deleted, labels_of, uid_of
from isvc.kube.resource import PODS, Resource
from isvc.local.controllers.pods import is_ready
from isvc.local.gateway.endpoints.backends import Endpoint, Unavailable
from isvc.local.node.pods.ports import local_ports
from isvc.serving.llm.labels import ROLE
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

POOLS_BY_GROUP: Mapping[str, Resource] = {
    resource.group: resource for resource in (INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)
}


class Reader(Protocol):
    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...
    def list(self, resource: Resource, namespace: str = "") -> list[Object]: ...


class Member(NamedTuple):
    """A pod of a pool. Endpoints are used again by other pods; what is known of a member goes by its uid."""

    uid: str
    endpoint: Endpoint


def pool_of(reference: Object) -> Resource | None:
    """The kind of pool that a backend of a route is; None for a Service."""
    return POOLS_BY_GROUP.get(reference.get("group") or "") if reference.get("kind") == INFERENCE_POOLS.kind else None


def members(reader: Reader, pool: Resource, namespace: str, name: str) -> list[Member]:
    """Those that can take a request. Servers that only read prompts cannot: nobody would hand their cache on."""
    found = reader.get(pool, name, namespace)
    if found is None:
        raise Unavailable(f"InferencePool {namespace}/{name} does not exist")
    pods = [pod for pod in selected(reader.list(PODS, namespace), found) if labels_of(pod).get(ROLE) != "prefill"]
    usable = [pod for pod in pods if is_ready(pod) and not is_being_deleted(pod)]
    if not usable:
        count = f"{len(pods)} pod{'s' if len(pods) != 1 else ''}, none ready" if pods else "no pods"
        raise Unavailable(f"InferencePool {namespace}/{name} has {count}")
    return [Member(uid_of(pod), endpoint) for pod in usable for endpoint in _endpoints(pod, found)]


def selected(pods: Iterable[Object], pool: Object) -> list[Object]:
    """The pods of a pool, ready or not."""
    selector = dig(pool, "spec", "selector") or {}
    wanted = selector.get("matchLabels", selector)  # the older group has the labels themselves
    return [pod for pod in pods if wanted and wanted.items() <= labels_of(pod).items()]


def _endpoints(pod: Object, pool: Object) -> Iterable[Endpoint]:
    address = dig(pod, "status", "podIP") or "127.0.0.1"
    ports = [
        dig(pool, "spec", "targetPortNumber"),
        *(each["number"] for each in dig(pool, "spec", "targetPorts") or ()),
    ]
    here = local_ports(pod)
    return [Endpoint(address, here.get(port, port)) for port in ports if port]
