"""The one route configuration of Envoy's, of which only those virtual hosts are made anew that have changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakSet

from isvc.kube.objects import Key
from isvc.local.gateway.backends import Backends, Target
from isvc.local.gateway.envoy import guard, hosts
from isvc.local.gateway.envoy.messages import RBACPerRoute, Route, RouteConfiguration, encode, pack
from isvc.local.gateway.envoy.routes import Way, routes
from isvc.local.gateway.envoy.types import AGAIN_HEADER, POD_HEADER, ROUTES, Json
from isvc.local.gateway.names import is_this_machine
from isvc.local.gateway.routes.rules import Refusal, Rule
from isvc.local.gateway.routes.table import ANY, RouteTable

_EVERYWHERE: Json = {
    "name": ROUTES,
    "ignore_port_in_host_matching": True,
    "most_specific_header_mutations_wins": True,
    "request_headers_to_add": [
        {"header": {"key": "x-forwarded-host", "value": "%REQ(:AUTHORITY)%"}, "append_action": "ADD_IF_ABSENT"},
        {"header": {"key": "x-forwarded-for", "value": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"}},
    ],
    "request_headers_to_remove": [
        POD_HEADER,
        AGAIN_HEADER,
        "proxy-authorization",
        "proxy-connection",
        "x-envoy-external-address",
    ],
}


class VirtualHosts:
    def __init__(
        self,
        table: RouteTable,
        backends: Backends,
        allowed_origins: Collection[str] = (),
        outside: Iterable[Json] = (),
    ) -> None:
        """A rule for any host serves the hosts of allowed origins, too; `outside` says how pods reach other hosts."""
        self._table, self._backends = table, backends
        self._strangers = pack(encode(RBACPerRoute, guard.unknown_hosts(allowed_origins)))
        allowed = {urlsplit(origin).hostname or "" for origin in allowed_origins} - {""}
        self._allowed = frozenset(allowed)
        self._outside = hosts.outside_routes(outside)
        self._always = {hosts.THIS_MACHINE, f"*.{hosts.THIS_MACHINE}", hosts.CATCH_ALL, *self._allowed}
        self._due: set[str] = set(self._always)
        self._services: dict[str, Key] = {}  # by their names
        self._known: dict[str, Any] = {}
        self._uses: dict[str, set[Target]] = {}
        self._made: WeakKeyDictionary[Rule, dict[tuple[Way, ...], list[Any]]] = WeakKeyDictionary()
        self._proven: WeakSet[Rule] = WeakSet()
        self._withheld: WeakKeyDictionary[Rule, str] = WeakKeyDictionary()

    def service_changed(self, key: Key) -> None:
        """A Service has come, gone, or changed its ports."""
        names = [*hosts.service_names(key), hosts.short_name(key)]
        for name in names:
            if self._backends.ports(key) is None:
                self._services.pop(name, None)
            else:
                self._services[name] = key
        self._due |= set(names)

    def target_changed(self, target: Target) -> None:
        """A backend is reached in another way."""
        self._due |= {host for host, targets in self._uses.items() if target in targets}

    def update(self) -> bool:
        """Makes those virtual hosts anew that have changed; returns whether there are any."""
        changed, self._table.changed = self._table.changed, set()
        if any(host == ANY or host.startswith("*.") for host in changed):
            changed |= self._known.keys()
        due, self._due = self._due | changed, set()
        for host in due - {ANY}:
            if host in self._table.hosts or host in self._services or host in self._always:
                self._known[host] = self._make(host)
            else:
                self._known.pop(host, None)
                self._uses.pop(host, None)
        return bool(due)

    def message(self) -> Any:
        """Returns the configuration."""
        found = encode(RouteConfiguration, _EVERYWHERE)
        found.virtual_hosts.extend(self._known.values())
        return found

    def _make(self, host: str) -> Any:
        any_host = self._table.rules(ANY)
        if host == hosts.CATCH_ALL:
            self._uses[host] = _targets(any_host)
            made = hosts.catch_all_routes(any_host, self._translate, self._outside)
            found = hosts.virtual_host([host], made)
            found.typed_per_filter_config[guard.FILTER].CopyFrom(self._strangers)
            return found
        rules = [*self._table.rules(host), *self._service_rules(host)]
        self._uses[host] = _targets([*rules, *any_host])
        trusted = is_this_machine(host.removeprefix("*.")) or host in self._allowed
        made = hosts.host_routes(host, rules, any_host, self._translate, self._outside, trusted=trusted)
        return hosts.virtual_host(hosts.domains(host), made)

    def _service_rules(self, host: str) -> list[Rule]:
        key = self._services.get(host)
        ports = self._backends.ports(key) if key is not None else None
        if key is None or ports is None:
            return []
        rules = hosts.service_rules(key, ports)
        return hosts.for_pods(rules) if host == hosts.short_name(key) else rules

    def _translate(self, rule: Rule) -> list[Any]:
        ways = tuple(self._backends.way(backend) for backend in rule.backends)
        made = self._made.setdefault(rule, {})
        if ways not in made:
            made.clear()
            withheld = self._withheld.get(rule)
            wanted = rule if withheld is None else replace(rule, refusal=Refusal(500, withheld))
            made[ways] = [encode(Route, each) for each in routes(wanted, self._backends.way)]
        return made[ways]

    # -- what Envoy does not take -------------------------------------------------------------------------------------

    def unproven(self) -> list[Rule]:
        """Returns the rules that Envoy has not taken yet."""
        return [rule for rule in self._made if rule not in self._proven and rule not in self._withheld]

    def prove(self) -> None:
        """Envoy has taken everything."""
        self._proven |= {rule for rule in self._made if rule not in self._withheld}

    def withhold(self, rules: Iterable[Rule], reason: str) -> None:
        """Answers in place of these rules, which Envoy does not take, or of which one may be such."""
        for rule in rules:
            self._withheld[rule] = f"{rule.origin} asks for what Envoy refuses: {reason}"
            self._forget(rule)

    def release(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            self._withheld.pop(rule, None)
            self._forget(rule)

    def _forget(self, rule: Rule) -> None:
        self._made.pop(rule, None)
        self._due |= self._known.keys()


def _targets(rules: Iterable[Rule]) -> set[Target]:
    backends = (each for rule in rules for each in (*rule.backends, *(mirror.backend for mirror in rule.mirrors)))
    return {Target(Key(backend.namespace, backend.service), backend.pool) for backend in backends}
