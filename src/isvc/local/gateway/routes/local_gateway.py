"""Knative's local gateway, to which VirtualServices send requests on under the name of a component.

It is this gateway, so such a rule becomes the rules of that name, with what it asks for itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from isvc.local.gateway.routes.rules import Filters, Match, PathRewrite, Refusal, Rule
from isvc.local.knative.kinds import LOCAL_GATEWAY


def sent_on_as(rule: Rule) -> str | None:
    """Returns the host under which a rule sends requests to the local gateway; None if it sends them elsewhere."""
    if not any((each.namespace, each.service) == LOCAL_GATEWAY for each in rule.backends):
        return None
    hosts = [value for name, value in rule.filters.request.set if name.lower() == "host"]
    return (rule.filters.rewrite_host or (hosts[-1] if hosts else "")).lower()


@lru_cache(maxsize=4096)
def led_on(rule: Rule, host: str, behind: tuple[Rule, ...]) -> list[Rule]:
    """Returns what becomes of a rule to the local gateway, where `behind` are the rules of the host it asks for."""
    found = [both for second in behind if sent_on_as(second) is None and (both := _both(rule, second))]
    if found:
        return found
    reason = f"{rule.origin} leads to {host or 'no host'}, which no Knative Service has"
    return [replace(rule, backends=(), refusal=Refusal(503, reason))]


def _both(first: Rule, second: Rule) -> Rule | None:
    """Returns the second rule for requests that follow both; None where one path would have to match twice."""
    match, rewrite = first.match, first.filters.path
    if not second.match.is_any_path:
        if rewrite != PathRewrite() or not match.is_any_path:
            return None
        match = replace(match, kind=second.match.kind, path=second.match.path)
    if second.filters.path != PathRewrite():
        if rewrite != PathRewrite():
            return None
        rewrite = second.filters.path
    if first.match.method and second.match.method not in ("", first.match.method):
        return None
    filters = Filters(
        first.filters.request.then(second.filters.request),
        second.filters.response.then(first.filters.response),
        second.filters.rewrite_host or first.filters.rewrite_host,
        rewrite,
    )
    return replace(second, match=_conjunction(match, second.match), filters=filters)


def _conjunction(match: Match, other: Match) -> Match:
    """Returns a match with the method, headers and query of another one, too."""
    return replace(
        match,
        method=match.method or other.method,
        headers=(*match.headers, *other.headers),
        query=(*match.query, *other.query),
    )
