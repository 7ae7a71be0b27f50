"""Routes of InferenceGraphs: outside of Knative KServe makes none, so the gateway leads to a graph's router itself.

In Knative mode the graph's host is that of its Knative Service. A path for clients without it leads to the Service's
name in the cluster, by way of Knative's local gateway.
"""

from __future__ import annotations

from isvc.kube.objects import Object, labels_of, name_of, namespace_of
from isvc.local.gateway.unready import addresses
from isvc.local.knative.kinds import LOCAL_GATEWAY, ROUTE
from isvc.serving.hosts import service_host


def graph_routes(graph: Object, route: Object | None, router: Object | None) -> list[tuple[Object, list[str]]]:
    """Returns HTTPRoutes that nobody wrote, and their hosts: the host of the graph's URL, and a path without it.

    `route` and `router` are the HTTPRoute and the Service of the graph's name. While there is neither, what leads to
    the graph is not known, and a guess would take requests to what never comes.
    """
    host, prefix, *_ = addresses(graph)
    matches = [{"path": {"type": "PathPrefix", "value": prefix}}]
    change: Object = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    if route is not None and ROUTE in labels_of(route):
        change["hostname"] = service_host(name_of(graph), namespace_of(graph))
        gateway = {"name": LOCAL_GATEWAY.name, "namespace": LOCAL_GATEWAY.namespace}
        return [(_route(graph, _rewritten(matches, change), gateway), ["localhost"])]
    if router is None:
        return []
    backend = {"name": name_of(graph)}
    return [(_route(graph, {}, backend), [host]), (_route(graph, _rewritten(matches, change), backend), ["localhost"])]


def _rewritten(matches: list[Object], change: Object) -> Object:
    return {"matches": matches, "filters": [{"type": "URLRewrite", "urlRewrite": change}]}


def _route(graph: Object, rule: Object, service: Object) -> Object:
    rules = [{**rule, "backendRefs": [{**service, "port": 80}]}]
    return {"metadata": graph["metadata"], "spec": {"rules": rules}}
