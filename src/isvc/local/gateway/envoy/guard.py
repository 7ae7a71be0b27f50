"""Who may use the gateway, decided by Envoy for each request.

Anybody on this machine may ask for a service by its host. A web page of another site may not, unless its origin is
allowed: browsers say where a request comes from, and no page can make them say otherwise. The forward proxy, which
lends the machine's network to whoever uses it, is for pods alone: they have a credential.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from isvc.local.gateway.envoy.types import Json, typed

FILTER: Final = "isvc.guard"
_RBAC: Final = "envoy.extensions.filters.http.rbac.v3.RBAC"


def foreign_pages(allowed_origins: Collection[str]) -> Json:
    """Returns the filter that refuses pages of other sites.

    A page whose name leads to this machine only since it was loaded (DNS rebinding) is of the same origin as its
    request; so that origin has to be a host of ours, too: see `unknown_hosts`.
    """
    asked = {"condition": _IS_OF_ANOTHER_ORIGIN, "cel_config": {"enable_string_concat": True}}
    policies = _foreign(allowed_origins)
    return _filter(FILTER, {**policies, "foreign.asked": {**policies["foreign.asked"], **asked}})


def unknown_hosts(allowed_origins: Collection[str]) -> Json:
    """Returns what stands in place of `foreign_pages` for hosts without a route: no page has such a name rightly."""
    rules = {"action": "DENY", "policies": _foreign(allowed_origins)}
    return {"rbac": {"rules": rules}}


def _foreign(allowed_origins: Collection[str]) -> dict[str, Json]:
    """Returns policies for requests that a browser says come from elsewhere, and for those that name an origin."""
    but_for = [_not(_header("origin", {"exact": origin})) for origin in allowed_origins]
    elsewhere = _not(_header("sec-fetch-site", _regex("none|same-origin")))
    return {
        "foreign.fetched": _policy(_all(_present("sec-fetch-site"), elsewhere, *but_for)),
        "foreign.asked": _policy(_all(_present("origin"), *but_for)),
    }


def pods_only(login: str) -> Json:
    """Returns the filter of the port that is the proxy of pods; `login` is what they send as Proxy-Authorization."""
    return _filter(f"{FILTER}.pods", {"no-pod": _policy(_not(_header("proxy-authorization", {"exact": login})))})


def not_this_machine() -> Json:
    """Returns the filter that keeps the proxy from being a way around a sandbox, to ports of this machine.

    Nor to link-local addresses, where clouds keep a machine's credentials.
    """
    ranges = [("127.0.0.0", 8), ("0.0.0.0", 8), ("169.254.0.0", 16), ("::1", 128), ("::", 128), ("fe80::", 10)]  # noqa: S104
    matched = [
        {
            "matcher": {
                "name": "envoy.rbac.matchers.upstream_ip_port",
                "typed_config": typed(
                    "envoy.extensions.rbac.matchers.upstream_ip_port.v3.UpstreamIpPortMatcher",
                    upstream_ip={"address_prefix": address, "prefix_len": length},
                ),
            }
        }
        for address, length in ranges
    ]
    return _filter(f"{FILTER}.addresses", {"off-limits": {"permissions": matched, "principals": [{"any": True}]}})


def _filter(name: str, policies: Mapping[str, Json]) -> Json:
    """Denies what one of the policies is for; their names are what the answer is worded by."""
    return {"name": name, "typed_config": typed(_RBAC, rules={"action": "DENY", "policies": policies})}


def _policy(permission: Json) -> Json:
    return {"permissions": [permission], "principals": [{"any": True}]}


def _all(*rules: Json) -> Json:
    return {"and_rules": {"rules": list(rules)}}


def _not(rule: Json) -> Json:
    return {"not_rule": rule}


def _present(name: str) -> Json:
    return {"header": {"name": name, "present_match": True}}


def _header(name: str, string_match: Json) -> Json:
    return {"header": {"name": name, "string_match": string_match}}


def _regex(pattern: str) -> Json:
    return {"safe_regex": {"regex": pattern}}


def _call(function: str, *arguments: Json) -> Json:
    return {"call_expr": {"function": function, "args": list(arguments)}}


def _attribute(name: str) -> Json:
    return {"select_expr": {"operand": {"ident_expr": {"name": "request"}}, "field": name}}


def _text(value: Any) -> Json:
    return {"const_expr": {"string_value": value}}


def _is_origin(scheme: str) -> Json:
    """Returns `request.headers["origin"] == scheme + request.host`, as CEL's syntax tree."""
    origin = _call("_[_]", _attribute("headers"), _text("origin"))
    return _call("_==_", origin, _call("_+_", _text(scheme), _attribute("host")))


_IS_OF_ANOTHER_ORIGIN: Final = _call("!_", _call("_||_", _is_origin("http://"), _is_origin("https://")))
