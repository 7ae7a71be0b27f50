"""The members of an InferencePool: pods that its selector finds, and the port of this machine that each answers on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from isvc.kube.objects import Object, dig, is_being_deleted, labels_of, uid_of
from isvc.kube.resource import PODS, Resource
from isvc.local.controllers.pods import is_ready
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.node.pods.ports import local_ports
from isvc.serving.llm.labels import ROLE
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

__all__ = ["PODS", "POOLS_BY_GROUP", "Member", "candidates", "members", "pool_of", "selected"]

POOLS_BY_GROUP: Mapping[str, Resource] = {
    resource.group: resource for resource in (INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)
}


class Member(NamedTuple):
    """A pod of a pool. Endpoints are used again by other pods; what is known of a member goes by its uid."""

    uid: str
    endpoint: Endpoint


def pool_of(reference: Object) -> Resource | None:
    """The kind of pool that a backend of a route is; None for a Service."""
    return POOLS_BY_GROUP.get(reference.get("group") or "") if reference.get("kind") == INFERENCE_POOLS.kind else None


def members(pods: Iterable[Object], pool: Object) -> list[Member]:
    """Returns those that can take a request."""
    usable = [pod for pod in candidates(pods, pool) if is_ready(pod) and not is_being_deleted(pod)]
    return [Member(uid_of(pod), endpoint) for pod in usable for endpoint in _endpoints(pod, pool)]


def candidates(pods: Iterable[Object], pool: Object) -> list[Object]:
    """Returns the pods of a pool but for those that only read prompts: nobody would hand their cache on."""
    return [pod for pod in selected(pods, pool) if labels_of(pod).get(ROLE) != "prefill"]


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
