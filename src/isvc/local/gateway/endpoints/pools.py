"""The members of an InferencePool: pods that its selector finds, and the port of this machine that each answers on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.kube.objects import Object, dig, is_being_deleted, labels_of, namespace_of, uid_of
from isvc.kube.owners import owner_refs
from isvc.kube.resource import SERVICES, Resource
from isvc.local.controllers.pods import is_ready
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.node.pods.ports import local_ports
from isvc.serving.llm.labels import ROLE
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2
from isvc.toolkit.cache import Reader

PICKER_OF_POOL: Final = "picker"
_PICKER_PORT: Final = 9002

POOLS_BY_GROUP: Mapping[str, Resource] = {
    resource.group: resource for resource in (INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)
}


class Member(NamedTuple):
    """A pod of a pool. Endpoints are used again by other pods; what is known of a member goes by its uid."""

    uid: str
    endpoint: Endpoint


class PickerRef(NamedTuple):
    """Whom a pool asks for endpoints: a port of a Service, and what is done where nobody answers there."""

    service: str
    port: int
    fails_open: bool


def picker_service(pool: Object) -> Iterable[str]:
    """Yields the index under which pools are found by the Services of their pickers: `namespace/service`."""
    if name := _picker_ref(pool).get("name"):
        yield f"{namespace_of(pool)}/{name}"


def _picker_ref(pool: Object) -> Object:
    return dig(pool, "spec", "endpointPickerRef") or dig(pool, "spec", "extensionRef") or {}


def picker_of(pool: Object, reader: Reader) -> PickerRef | None:
    """Returns the endpoint picker of a pool that is to be asked.

    The Service of an LLMInferenceService's own picker leads to a process that only says that the gateway picks.
    """
    found = _picker_ref(pool)
    service = reader.get(SERVICES, found.get("name", ""), namespace_of(pool))
    if service is None or any(owner["kind"] == LLM_INFERENCE_SERVICES.kind for owner in owner_refs(service)):
        return None
    port = dig(found, "port", "number") or found.get("portNumber") or _PICKER_PORT
    return PickerRef(found["name"], port, found.get("failureMode") == "FailOpen")


def pool_of(reference: Object) -> Resource | None:
    """Returns the kind of pool that a backend of a route is; None for a Service."""
    return POOLS_BY_GROUP.get(reference.get("group") or "") if reference.get("kind") == INFERENCE_POOLS.kind else None


def members(pods: Iterable[Object], pool: Object) -> list[Member]:
    """Returns those that can take a request."""
    usable = [pod for pod in candidates(pods, pool) if is_ready(pod) and not is_being_deleted(pod)]
    return [Member(uid_of(pod), endpoint) for pod in usable for endpoint in _endpoints(pod, pool)]


def candidates(pods: Iterable[Object], pool: Object) -> list[Object]:
    """Returns the pods of a pool but for those that only read prompts: nobody would hand their cache on."""
    return [pod for pod in pods_of(pods, pool) if labels_of(pod).get(ROLE) != "prefill"]


def pods_of(pods: Iterable[Object], pool: Object) -> list[Object]:
    """Returns the pods of a pool, ready or not."""
    wanted = labels_of_members(pool)
    return [pod for pod in pods if wanted and wanted.items() <= labels_of(pod).items()]


def labels_of_members(pool: Object) -> Mapping[str, str]:
    """Returns the labels that pods of a pool have."""
    selector = dig(pool, "spec", "selector") or {}
    found: Mapping[str, str] = selector.get("matchLabels", selector)  # the older group has the labels themselves
    return found


def _endpoints(pod: Object, pool: Object) -> Iterable[Endpoint]:
    address = dig(pod, "status", "podIP") or "127.0.0.1"
    ports = [
        dig(pool, "spec", "targetPortNumber"),
        *(each["number"] for each in dig(pool, "spec", "targetPorts") or ()),
    ]
    here = local_ports(pod)
    return [Endpoint(address, here.get(port, port)) for port in ports if port]
