"""Columns of Services, Endpoints, Ingresses and NetworkPolicies."""

from __future__ import annotations

from isvc.apiserver.tables.columns import AGE, NAME, NONE, Column, at, join_values
from isvc.apiserver.tables.workloads import SELECTOR
from isvc.kube.objects import Object, dig
from isvc.kube.selectors import LabelSelector


def _external_ip(service: Object) -> str:
    spec = service.get("spec", {})
    extra = spec.get("externalIPs") or []
    match spec.get("type", "ClusterIP"):
        case "LoadBalancer":
            return ",".join([*_points(service), *extra]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return join_values(extra)


def _service_ports(service: Object) -> str:
    def text(port: Object) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"

    return join_values(text(port) for port in dig(service, "spec", "ports") or ())


def _endpoints(obj: Object) -> str:
    found = [
        f"{address['ip']}:{port['port']}" if "port" in port else address["ip"]
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or [{}]
        for address in subset.get("addresses") or ()
    ]
    return _first_three(found) or NONE


def _first_three(texts: list[str]) -> str:
    return ",".join(texts[:3]) + (f" + {len(texts) - 3} more..." if len(texts) > 3 else "")


def _ingress_hosts(ingress: Object) -> str:
    hosts = [rule["host"] for rule in dig(ingress, "spec", "rules") or () if rule.get("host")]
    return _first_three(hosts) or "*"


def _slice_ports(obj: Object) -> str:
    return ",".join(str(each.get("port", "*")) for each in obj.get("ports") or ()) or "<unset>"


def _slice_endpoints(obj: Object) -> str:
    found = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    return _first_three(found) or "<unset>"


def _matches_all(obj: Object) -> str:
    spec = dig(obj, "spec", "podSelector")
    return str(LabelSelector.from_spec(spec)) or NONE if isinstance(spec, dict) else NONE


def _points(balanced: Object) -> list[str]:
    """Returns where a load balancer takes requests for a Service or an Ingress."""
    points = dig(balanced, "status", "loadBalancer", "ingress") or ()
    return [point.get("ip") or point.get("hostname") or "" for point in points]


def _parameters(obj: Object) -> str:
    parameters = dig(obj, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters.get('kind')}{group}/{parameters.get('name')}"


def _parent(obj: Object) -> str:
    parent = dig(obj, "spec", "parentRef")
    if not parent:
        return NONE
    resource = ".".join(filter(None, (parent.get("resource"), parent.get("group")))).lower()
    return "/".join(filter(None, (resource, parent.get("namespace"), parent.get("name"))))


SERVICES = (
    NAME,
    at("Type", "spec", "type"),
    at("Cluster-IP", "spec", "clusterIP", default=NONE),
    Column("External-IP", _external_ip),
    Column("Port(s)", _service_ports),
    AGE,
    SELECTOR,
)
ENDPOINTS = (NAME, Column("Endpoints", _endpoints), AGE)
ENDPOINT_SLICES = (
    NAME,
    at("AddressType", "addressType"),
    Column("Ports", _slice_ports),
    Column("Endpoints", _slice_endpoints),
    AGE,
)
INGRESSES = (
    NAME,
    at("Class", "spec", "ingressClassName", default=NONE),
    Column("Hosts", _ingress_hosts),
    Column("Address", lambda ingress: ",".join(_points(ingress))),
    Column("Ports", lambda o: "80, 443" if dig(o, "spec", "tls") else "80"),
    AGE,
)
NETWORK_POLICIES = (NAME, Column("Pod-Selector", _matches_all), AGE)
INGRESS_CLASSES = (NAME, at("Controller", "spec", "controller"), Column("Parameters", _parameters), AGE)
IP_ADDRESSES = (NAME, Column("ParentRef", _parent))
SERVICE_CIDRS = (NAME, Column("CIDRs", lambda obj: ",".join(dig(obj, "spec", "cidrs") or ())), AGE)
