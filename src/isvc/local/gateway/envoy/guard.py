"""Pages of other sites, which may not use the gateway: what browsers say of requests that come from elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from isvc.local.gateway.envoy.types import Json

FILTER: Final = "isvc.guard"


def foreign_policies(allowed_origins: Collection[str]) -> Json:
    """Returns policies for requests that a browser says come from elsewhere, and for those that name an origin.

    As they are they stand for hosts without a route: no page has such a name rightly. For others `bootstrap.yaml`
    leaves out those of the same origin. Their names are what the answer is worded by.
    """
    but_for = [_not({"name": "origin", "string_match": {"exact": origin}}) for origin in allowed_origins]
    elsewhere = _not({"name": "sec-fetch-site", "string_match": {"safe_regex": {"regex": "none|same-origin"}}})
    return {
        "foreign.fetched": _policy(_present("sec-fetch-site"), elsewhere, *but_for),
        "foreign.asked": _policy(_present("origin"), *but_for),
    }


def unknown_hosts(allowed_origins: Collection[str]) -> Json:
    """Returns what stands in place of the filter for hosts without a route."""
    return {"rbac": {"rules": {"action": "DENY", "policies": foreign_policies(allowed_origins)}}}


def _policy(*rules: Json) -> Json:
    return {"permissions": [{"and_rules": {"rules": [*rules]}}], "principals": [{"any": True}]}


def _present(name: str) -> Json:
    return {"header": {"name": name, "present_match": True}}


def _not(header: Json) -> Json:
    return {"not_rule": {"header": header}}
