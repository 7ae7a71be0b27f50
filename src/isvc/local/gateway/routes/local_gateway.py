"""Knative's local gateway, to which VirtualServices send requests on under the name of a component.

It is this gateway, so such a request is routed a second time, by that name, and does not leave the process.
"""

from __future__ import annotations

from dataclasses import replace

from isvc.local.gateway.requests.target import Target
from isvc.local.gateway.routes.rules import Filters, HeaderChange, Rule
from isvc.local.knative.kinds import LOCAL_GATEWAY


def sent_on_as(rule: Rule) -> str | None:
    """The host under which a rule sends requests to the local gateway; None for a rule that sends them elsewhere."""
    if not any((each.namespace, each.service) == LOCAL_GATEWAY for each in rule.backends):
        return None
    hosts = [value for name, value in rule.filters.request.set if name.lower() == "host"]
    return (rule.filters.rewrite_host or (hosts[-1] if hosts else "")).lower()


def target_behind(rule: Rule, target: Target, host: str) -> Target:
    """What the request asks for after the rule's changes."""
    return target._replace(host=host, port=80, path=rule.filters.path(target.path, rule.match))


def both(first: Rule, second: Rule) -> Rule:
    """The second rule with the changes of headers that the first one makes before."""
    filters = Filters(
        _one_after_the_other(first.filters.request, second.filters.request),
        _one_after_the_other(second.filters.response, first.filters.response),
        second.filters.rewrite_host or first.filters.rewrite_host,
        second.filters.path,
    )
    return replace(second, filters=filters)


def _one_after_the_other(first: HeaderChange, second: HeaderChange) -> HeaderChange:
    return HeaderChange((*first.set, *second.set), (*first.add, *second.add), (*first.remove, *second.remove))
