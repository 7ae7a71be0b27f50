"""What a cluster holds before anyone creates anything: namespaces, roles, and a Service for the API server itself."""

from __future__ import annotations

import asyncio
import gzip
from functools import partial
from importlib import resources

import orjson

from isvc.apiserver.access.rbac import BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES
from isvc.apiserver.background.actor import Actor
from isvc.apiserver.objects.metadata import new_uid, now
from isvc.apiserver.request import User
from isvc.apiserver.verbs.pipeline import Api
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
    server = Actor(api, "kube-apiserver", SYSTEM)
    for name in NAMES:
        if api.store.get("namespaces", "", name) is None:
            await server.create(NAMESPACES, "", {"metadata": {"name": name}})
    await _create_first_objects(api)
    here = "127.0.0.1" if address in ANYWHERE else address
    for resource, obj in _own_service(cluster_ip, here, port):
        if entry := api.store.get(str(resource), "default", "kubernetes"):
            await server.change(entry, partial(_renew, obj))
        else:
            await server.create(resource, "default", obj)


def _renew(obj: Object, live: Object) -> None:
    live |= merge_patch.apply(live, {field: value for field, value in obj.items() if field != "metadata"})


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
