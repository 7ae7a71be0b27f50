"""The way out for pods: their http:// requests to hosts that are none of this machine's Services."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from isvc.local.gateway.envoy.types import Json

CLUSTER: Final = "outside"
PROXY_CLUSTER: Final = "outside-proxy"


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
