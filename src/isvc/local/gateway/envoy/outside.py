"""The way out for pods: their http:// requests to hosts that are none of this machine's Services."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from isvc.local.gateway.envoy.clusters import protocol
from isvc.local.gateway.envoy.types import Json, typed

CLUSTER: Final = "outside"
PROXY_CLUSTER: Final = "outside-proxy"
_CACHE: Final[Json] = {
    "name": "isvc",
    "dns_lookup_family": "V4_PREFERRED",
    "typed_dns_resolver_config": {
        "name": "envoy.network.dns_resolver.getaddrinfo",
        "typed_config": typed("envoy.extensions.network.dns_resolver.getaddrinfo.v3.GetAddrInfoDnsResolverConfig"),
    },
}


def dns_filter() -> Json:
    """Returns the filter that finds the address of a host."""
    config = typed(
        "envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig",
        dns_cache_config=_CACHE,
        save_upstream_address=True,
    )
    return {"name": "envoy.filters.http.dynamic_forward_proxy", "typed_config": config}


def clusters(proxy: str) -> Iterable[Json]:
    """Yields the clusters of hosts outside; `proxy` is the URL of the one that this machine's environment asks for."""
    config = typed("envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig", dns_cache_config=_CACHE)
    yield {
        "name": CLUSTER,
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": "10s",
        "cluster_type": {"name": "envoy.clusters.dynamic_forward_proxy", "typed_config": config},
    }
    if proxy:
        found = urlsplit(proxy)
        address = {"address": found.hostname, "port_value": found.port or 80}
        endpoint = {"endpoint": {"address": {"socket_address": address}}}
        options = protocol(http2=False)
        options["explicit_http_config"]["http_protocol_options"] = {"send_fully_qualified_url": True}
        yield {
            "name": PROXY_CLUSTER,
            "type": "STRICT_DNS",
            "connect_timeout": "10s",
            "load_assignment": {"cluster_name": PROXY_CLUSTER, "endpoints": [{"lb_endpoints": [endpoint]}]},
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
        }


def routes(proxies: Mapping[str, str]) -> list[Json]:
    """Returns the routes to hosts outside: by this machine's proxy, but for what `no_proxy` names.

    `proxies` is what `urllib.request.getproxies` finds in the environment.
    """
    direct: Json = {"route": {"cluster": CLUSTER, "timeout": "0s"}}
    proxy, excepted = proxies.get("http", ""), _patterns(proxies.get("no", ""))
    if not proxy or ".*" in excepted:
        return [direct]
    by_proxy: Json = {"route": {"cluster": PROXY_CLUSTER, "timeout": "0s"}, **_login(proxy)}
    if not excepted:
        return [by_proxy]
    hosts = {"name": ":authority", "string_match": {"safe_regex": {"regex": f"({'|'.join(excepted)})(:[0-9]+)?"}}}
    return [{**direct, "match": {"headers": [hosts]}}, by_proxy]


def _patterns(no_proxy: str) -> list[str]:
    names = [name.strip().lstrip(".") for name in no_proxy.split(",")]
    return [".*" if name == "*" else rf"(.*\.)?{re.escape(name)}" for name in names if name]


def _login(proxy: str) -> Json:
    found = urlsplit(proxy)
    if not found.username:
        return {}
    login = base64.b64encode(f"{unquote(found.username)}:{unquote(found.password or '')}".encode()).decode()
    return {"request_headers_to_add": [{"header": {"key": "proxy-authorization", "value": f"Basic {login}"}}]}
