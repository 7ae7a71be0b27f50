"""Routes of InferenceGraphs: KServe makes none outside of Knative, so the gateway leads to a graph's router itself."""

from __future__ import annotations

from isvc.kube.objects import Object, name_of
from isvc.local.gateway.unready import addresses


def graph_routes(graph: Object) -> list[tuple[Object, list[str]]]:
    """HTTPRoutes that nobody wrote, and their hosts: the host of the graph's URL, and a path for clients without it."""
    host, prefix, *_ = addresses(graph)
    path = {"type": "PathPrefix", "value": prefix}
    rewrite = {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}
    return [
        (_route(graph, {}), [host]),
        (_route(graph, {"matches": [{"path": path}], "filters": [rewrite]}), ["localhost"]),
    ]


def _route(graph: Object, rule: Object) -> Object:
    rules = [{**rule, "backendRefs": [{"name": name_of(graph), "port": 80}]}]
    return {"metadata": graph["metadata"], "spec": {"rules": rules}}
