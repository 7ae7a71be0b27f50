"""What a cluster holds before anyone creates anything: its namespaces, and a Service for the API server itself."""

from __future__ import annotations

from isvc.apiserver.request import Call, Request, User
from isvc.apiserver.verbs import body
from isvc.apiserver.verbs.create import create_object
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import Object
from isvc.kube.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, SERVICES, Resource

SYSTEM = User("system:apiserver", ("system:masters",))
NAMES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def create_missing(api: Api, host: str, port: int) -> None:
    for name in NAMES:
        if api.store.get("namespaces", "", name) is None:
            await _create(api, NAMESPACES, {"metadata": {"name": name}})
    for resource, obj in _own_service(api.addresses.kubernetes, host, port):
        if api.store.get(str(resource), "default", "kubernetes") is None:
            await _create(api, resource, obj)


async def _create(api: Api, resource: Resource, obj: Object) -> None:
    description = api.registry.find(resource.group, resource.version, resource.plural)
    assert description is not None
    request = Request("POST", "", "", {"user-agent": "kube-apiserver"}, b"")
    request.user = SYSTEM
    call = Call(request, description, "default" if resource.namespaced else "", field_validation="Ignore")
    await create_object(api, call, body.decode(obj, call))


def _own_service(address: str, host: str, port: int) -> list[tuple[Resource, Object]]:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    service: Object = {
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address], "ports": ports},
    }
    endpoints: Object = {
        "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": host}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
    }
    endpoint_slice: Object = {
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    return [(SERVICES, service), (ENDPOINTS, endpoints), (ENDPOINT_SLICES, endpoint_slice)]
