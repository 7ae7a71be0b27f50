"""What a cluster holds before anyone creates anything: namespaces, roles, and a Service for the API server itself."""

from __future__ import annotations

import asyncio
import gzip
from importlib import resources

import orjson

from isvc.apiserver.access.rbac import BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES
from isvc.apiserver.objects.metadata import new_uid, now
from isvc.apiserver.request import Call, Request, User
from isvc.apiserver.verbs import body
from isvc.apiserver.verbs.create import create_object
from isvc.apiserver.verbs.pipeline import Api
from isvc.apiserver.verbs.update import change
from isvc.kube.objects import Object
from isvc.kube.patch import merge_patch
from isvc.kube.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, SERVICE_NAME_LABEL, SERVICES, Resource

SYSTEM = User("system:apiserver", ("system:masters",))
ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104
_COLLECTIONS = {
    "ClusterRole": CLUSTER_ROLES,
    "ClusterRoleBinding": CLUSTER_BINDINGS,
    "Role": ROLES,
    "RoleBinding": BINDINGS,
    "PriorityClass": "priorityclasses.scheduling.k8s.io",
}
NAMES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def create_missing(api: Api, cluster_ip: str, address: str, port: int) -> None:
    """`address` and `port` are where the server listens, which may be another place than last time."""
    for name in NAMES:
        if api.store.get("namespaces", "", name) is None:
            await _create(api, NAMESPACES, {"metadata": {"name": name}})
    await _create_first_objects(api)
    here = "127.0.0.1" if address in ANYWHERE else address
    for resource, obj in _own_service(cluster_ip, here, port):
        if api.store.get(str(resource), "default", "kubernetes") is None:
            await _create(api, resource, obj)
        else:
            await _renew(api, resource, obj)


async def _create_first_objects(api: Api) -> None:
    """Creates the roles and bindings that RBAC begins with; what an administrator changed since stays."""
    packed = resources.files("isvc.apiserver").joinpath("data/bootstrap.json.gz").read_bytes()
    writes = []
    for obj in orjson.loads(gzip.decompress(packed)):
        collection, meta = _COLLECTIONS[obj["kind"]], obj["metadata"]
        namespace = meta.get("namespace", "")
        if api.store.get(collection, namespace, meta["name"]) is None:
            meta |= {"uid": new_uid(), "creationTimestamp": now()}
            writes.append(api.store.put(collection, namespace, meta["name"], obj, None))
    await asyncio.gather(*writes)


async def _create(api: Api, resource: Resource, obj: Object) -> None:
    call = _call(api, resource)
    await create_object(api, call, body.decode(obj, call))


async def _renew(api: Api, resource: Resource, obj: Object) -> None:
    async def renew(live: Object) -> Object:
        fresh = {field: value for field, value in obj.items() if field != "metadata"}
        return body.decode(merge_patch.apply(live, fresh), call)

    call = _call(api, resource)
    call.name = "kubernetes"
    await change(api, call, renew)


def _call(api: Api, resource: Resource) -> Call:
    description = api.registry.find(resource.group, resource.version, resource.plural)
    assert description is not None
    request = Request("POST", "", "", {"user-agent": "kube-apiserver"}, b"")
    request.user = SYSTEM
    return Call(request, description, "default" if resource.namespaced else "", field_validation="Ignore")


def _own_service(cluster_ip: str, address: str, port: int) -> list[tuple[Resource, Object]]:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    service: Object = {
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {"type": "ClusterIP", "clusterIP": cluster_ip, "clusterIPs": [cluster_ip], "ports": ports},
    }
    endpoints: Object = {
        "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
    }
    endpoint_slice: Object = {
        "metadata": {"name": "kubernetes", "labels": {SERVICE_NAME_LABEL: "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    return [(SERVICES, service), (ENDPOINTS, endpoints), (ENDPOINT_SLICES, endpoint_slice)]
