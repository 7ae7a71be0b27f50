"""InterceptorRoutes of KEDA's HTTP add-on, as rules: this gateway is the interceptor."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.local.gateway.routes.rules import Rule, service_rule


def interceptor_route_rules(route: Object) -> Iterable[tuple[str, Rule]]:
    """Yields the rule of each host; paths and headers, which no route of ours has, are not looked at."""
    namespace, target = namespace_of(route), dig(route, "spec", "target") or {}
    port = target.get("port") or target.get("portName") or 80
    origin = f"InterceptorRoute {namespace}/{name_of(route)}"
    rule = service_rule(namespace, target.get("service", ""), port, origin=origin)
    for matched in dig(route, "spec", "rules") or ():
        yield from ((host, rule) for host in matched.get("hosts") or ())
