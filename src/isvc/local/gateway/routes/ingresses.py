"""Ingresses, in the form of HTTPRoutes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.local.gateway.routes.http_routes import rules_of
from isvc.local.gateway.routes.rules import Rule


def ingress_rules(ingress: Object) -> Iterable[tuple[str, Rule]]:
    namespace = namespace_of(ingress)
    for rule in dig(ingress, "spec", "rules") or []:
        for path in dig(rule, "http", "paths") or []:
            service = dig(path, "backend", "service") or {}
            port = dig(service, "port", "number") or dig(service, "port", "name")
            spec = {
                "matches": [{"path": _path(path.get("pathType"), path.get("path") or "/")}],
                "backendRefs": [{"name": service.get("name", ""), "port": port}],
            }
            for made in rules_of(f"Ingress {namespace}/{name_of(ingress)}", namespace, spec):
                yield rule.get("host", ""), made


def _path(kind: str | None, path: str) -> Object:
    """Returns a path's match; an ImplementationSpecific one is a prefix, unless it reads like KServe's expressions."""
    if kind == "ImplementationSpecific" and re.search(r"[*+?()\[\]^$\\|]", path):
        return {"type": "RegularExpression", "value": f"(?:{path}).*"}
    return {"type": "Exact" if kind == "Exact" else "PathPrefix", "value": path}
