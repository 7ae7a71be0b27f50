"""Knative's local gateway and KEDA's interceptor, to which routes send requests on under the name of a component.

Both are this gateway, so such a rule becomes the rules of that name, with what it asks for itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from isvc.kube.objects import Object
from isvc.local.gateway.names import full_name
from isvc.local.gateway.routes.rules import Backend, Path, Refusal, Rule, path_modifier, rewritten_host
from isvc.local.knative.kinds import LOCAL_GATEWAY
from isvc.serving.config.sections import AutoscalerConfig

INTERCEPTOR: Final = AutoscalerConfig().interceptor


def sent_on_as(rule: Rule) -> str | None:
    """Returns the host under which a rule sends requests to the local gateway; None if it sends them elsewhere."""
    return full_name(rewritten_host(rule.filters).lower()) if any(map(_is_this_gateway, rule.backends)) else None


def _is_this_gateway(backend: Backend) -> bool:
    return (backend.namespace, backend.service) in (LOCAL_GATEWAY, (INTERCEPTOR.namespace, INTERCEPTOR.name))


@lru_cache(maxsize=4096)
def resolve(rule: Rule, host: str, behind: tuple[Rule, ...]) -> list[Rule]:
    """Returns the rules that a rule to the local gateway becomes; `behind` are those of the host that it asks for."""
    found = [both for second in behind if sent_on_as(second) is None and (both := _both(rule, second))]
    if found:
        return found
    reason = f"{rule.origin} leads to {host or 'no host'}, which no Knative Service has"
    return [replace(rule, backends=(), refusal=Refusal(503, reason))]


def _both(first: Rule, second: Rule) -> Rule | None:
    """Returns the second rule for requests that follow both; None where one path would have to match twice."""
    match, is_rewritten = _conjunction(first.match, second.match), bool(path_modifier(first.filters))
    if match is None or (is_rewritten and (path_modifier(second.filters) or not Path.of(second.match).is_any)):
        return None
    responses = [each for each in second.filters if each["type"] == "ResponseHeaderModifier"]
    requests = [each for each in second.filters if each["type"] != "ResponseHeaderModifier"]
    timeouts = [item for rule in (first, second) for item in (rule.spec.get("timeouts") or {}).items() if item[1]]
    spec = {
        **second.spec,
        "filters": [*responses, *first.filters, *requests],  # the way back is the other way round
        "timeouts": dict(timeouts),
    }
    backends = second.backends
    if len(first.backends) > 1 and len(backends) == 1:  # others share its requests
        led = [replace(backends[0], weight=each.weight) if _is_this_gateway(each) else each for each in first.backends]
        backends = tuple(led)
    return replace(second, match=match, spec=spec, backends=backends, mirrors=(*first.mirrors, *second.mirrors))


def _conjunction(first: Object, second: Object) -> Object | None:
    """Returns the match of requests that both are for; None where there are none, or that cannot be said."""
    if first.get("method") and second.get("method") not in (None, "", first["method"]):
        return None
    if not Path.of(first).is_any and not Path.of(second).is_any:
        return None
    conditions = {key: [*(first.get(key) or ()), *(second.get(key) or ())] for key in ("headers", "queryParams")}
    path = (second if Path.of(first).is_any else first).get("path")
    return {**second, **first, **conditions, "path": path}
