"""Ingresses, compiled into rules and their hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.patterns import check
from isvc.local.gateway.routes.rules import Backend, Match, PathKind, Rule


def ingress_rules(ingress: Object) -> Iterable[tuple[str, Rule]]:
    namespace = namespace_of(ingress)
    origin = f"Ingress {namespace}/{name_of(ingress)}"
    for rule in dig(ingress, "spec", "rules") or []:
        for path in dig(rule, "http", "paths") or []:
            service = dig(path, "backend", "service") or {}
            port = dig(service, "port", "number") or dig(service, "port", "name") or 80
            backend = Backend(namespace, service.get("name", ""), port)
            kind = PathKind.EXACT if path.get("pathType") == "Exact" else PathKind.PREFIX
            match = _match(kind, path.get("path") or "/", is_regex=path.get("pathType") == "ImplementationSpecific")
            yield rule.get("host", ""), Rule(match, (backend,), origin=origin)


def _match(kind: PathKind, path: str, *, is_regex: bool) -> Match:
    """An ImplementationSpecific path is a prefix, unless it reads like the regular expressions KServe writes."""
    if is_regex and re.search(r"[*+?()\[\]^$\\|]", path):
        pattern = f"(?:{path}).*"
        check(pattern)
        return Match(PathKind.REGEX, pattern)
    return Match(kind, path)
