"""Pages of other sites: what browsers say of requests that come from elsewhere, and hear of those let in."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from isvc.local.gateway.envoy.types import Json

FILTER: Final = "isvc.guard"
PAGES_FILTER: Final = "isvc.pages"


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


def pages_policy(allowed_origins: Collection[str]) -> Json:
    """Returns what browsers hear of pages whose origin is allowed: they may ask for anything, and read the answer.

    A star has Envoy repeat what was asked for. Cookies are not sent along: they are what a page of another site could
    do harm with.
    """
    return {
        "allow_origin_string_match": [{"exact": origin} for origin in allowed_origins],
        "allow_methods": "*",
        "allow_headers": "*",
        "expose_headers": "*",
        "max_age": "600",
        "allow_private_network_access": True,  # Chrome asks for it when a page of the internet asks this machine
    }


def _policy(*rules: Json) -> Json:
    return {"permissions": [{"and_rules": {"rules": [*rules]}}], "principals": [{"any": True}]}


def _present(name: str) -> Json:
    return {"header": {"name": name, "present_match": True}}


def _not(header: Json) -> Json:
    return {"not_rule": {"header": header}}
