"""URLs under which a route answers, from the listeners and addresses of its gateways and the Services behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_network
from typing import Final
from urllib.parse import urlsplit

from isvc.controllers.llmisvc.observed import Network
from isvc.controllers.llmisvc.router.paths import base_paths
from isvc.controllers.llmisvc.router.validation import gateway_key
from isvc.kube.gourl import parse_address, url_host
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.serving.hosts import CLUSTER_DOMAIN, service_host
from isvc.serving.refused import Refused

_SCHEMES: Final = {"HTTP": "http", "HTTPS": "https", "TLS": "https"}
_STANDARD_PORTS: Final = {"http": 80, "https": 443}
_PRIVATE: Final = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))
_INTERNAL_SUFFIXES: Final = (CLUSTER_DOMAIN, ".local", ".localhost", ".internal")


@dataclass(frozen=True, slots=True)
class Discovered:
    """A URL, and the gateway that it goes through."""

    url: str
    gateway: Key

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def is_cluster_local(self) -> bool:
        return self.host.lower().endswith(CLUSTER_DOMAIN)

    @property
    def is_internal(self) -> bool:
        """Whether it is of no use outside: a name of the cluster or of a private network, or a private address."""
        return _is_internal(self.host)


def discover(route: Object, network: Network, scheme: str, model_header: str) -> list[Discovered]:
    """Returns them in the order of the route's gateways. `scheme` comes first among the listeners of one gateway.

    Raises `Refused` for a gateway that cannot take HTTP for this route.
    """
    paths = base_paths(route, model_header)
    found: list[Discovered] = []
    for parent in dig(route, "spec", "parentRefs") or ():
        key = gateway_key(parent, namespace_of(route))
        try:
            listeners = _listeners(network.gateways[key], parent.get("sectionName"), scheme)
            urls = [url for path in paths for url in _gateway_urls(route, key, listeners, network, path)]
        except Refused as refused:
            raise Refused(f"failed to discover URL for route {Key.of(route)}: {refused.message}") from None
        found += [Discovered(url, key) for url in dict.fromkeys(urls)]
    return found


def _gateway_urls(route: Object, key: Key, listeners: Sequence[Object], network: Network, path: str) -> Iterator[str]:
    gateway = network.gateways[key]
    for listener in listeners if dig(gateway, "status", "addresses") else ():
        for host in sorted(_hosts(route, listener, gateway, network.wildcard_label)):
            yield _url(host, _scheme(listener, gateway), listener["port"], path)
    service = network.gateway_services.get(key)
    if service is None:
        return
    host, ports = service_host(name_of(service), namespace_of(service)), dig(service, "spec", "ports")
    for listener in listeners:
        if not ports or listener["port"] in {port.get("port") for port in ports}:
            yield _url(host, _scheme(listener, gateway), listener["port"], path)


def _listeners(gateway: Object, section: str | None, preferred: str) -> list[Object]:
    """Returns the one that is named, or all that speak HTTP: those of the preferred scheme, then encrypted ones."""
    listeners = dig(gateway, "spec", "listeners") or ()
    title = Key.of(gateway)
    if section is not None:
        named = [listener for listener in listeners if listener.get("name") == section]
        if not named:
            raise Refused(
                f'failed to select listeners for gateway {title}: listener "{section}" not found in gateway {title}',
            )
        return named[:1]
    capable = [listener for listener in listeners if listener.get("protocol") in _SCHEMES]
    if not capable:
        raise Refused(
            f"failed to select listeners for gateway {title}: no HTTP-capable listener found in gateway {title}",
        )
    rank = {preferred: 0, "https": 1} if preferred != "https" else {"https": 0}
    return sorted(capable, key=lambda listener: rank.get(_SCHEMES[listener["protocol"]], 2))


def _scheme(listener: Object, gateway: Object) -> str:
    scheme = _SCHEMES.get(listener.get("protocol", ""))
    if scheme is None:
        raise Refused(
            f"failed to resolve scheme for gateway {Key.of(gateway)} listener {listener.get('name')}: listener"
            f' "{listener.get("name")}" uses unsupported protocol {listener.get("protocol")} for HTTP routing',
        )
    return scheme


def _hosts(route: Object, listener: Object, gateway: Object, wildcard_label: str) -> Iterable[str]:
    """Returns the route's own, else the listener's, else the gateway's addresses, which no host name would match."""
    if given := [host for host in dig(route, "spec", "hostnames") or () if host not in ("", "*")]:
        return given
    if host := listener.get("hostname"):
        return [f"{wildcard_label}.{host[2:]}" if host.startswith("*.") else host]
    return [address["value"] for address in dig(gateway, "status", "addresses") or () if address.get("value")]


def _url(host: str, scheme: str, port: int, path: str) -> str:
    given = "" if port in (0, _STANDARD_PORTS[scheme]) else f":{port}"
    return f"{scheme}://{url_host(host)}{given}{path}"


@lru_cache(maxsize=1024)
def _is_internal(host: str) -> bool:
    return _is_private(host) or host == "localhost" or host.lower().endswith(_INTERNAL_SUFFIXES)


def _is_private(host: str) -> bool:
    address = parse_address(host)
    return address is not None and any(address in each for each in _PRIVATE if each.version == address.version)
