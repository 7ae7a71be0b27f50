"""The one route configuration of Envoy's, of which only those virtual hosts are made anew that have changed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakSet

from isvc.kube.objects import Key
from isvc.local.gateway.backends import Backends
from isvc.local.gateway.envoy import guard, hosts
from isvc.local.gateway.envoy.messages import RBACPerRoute, RouteConfiguration, VirtualHost, encode, field, pack
from isvc.local.gateway.envoy.path_index import EncodedRoute
from isvc.local.gateway.envoy.routes import Destination, routes
from isvc.local.gateway.envoy.types import AGAIN_HEADER, POD_HEADER, ROUTES, Json
from isvc.local.gateway.names import is_this_machine
from isvc.local.gateway.routes.rules import Refusal, Rule, Target
from isvc.local.gateway.routes.table import ANY, WRONG_TYPES, RouteTable
from isvc.serving.hosts import service_host

log = logging.getLogger("isvc.gateway")

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
_HEAD: Final = encode(RouteConfiguration, _EVERYWHERE).SerializeToString()
_AT_A_TIME: Final = 0.005  # seconds


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
        strangers = {guard.FILTER: pack(encode(RBACPerRoute, guard.unknown_hosts(allowed_origins)))}
        self._strangers = VirtualHost(typed_per_filter_config=strangers).SerializeToString()
        allowed = {urlsplit(origin).hostname or "" for origin in allowed_origins} - {""}
        self._allowed = frozenset(allowed)
        self._outside = hosts.outside_routes(outside)
        self._always = {hosts.THIS_MACHINE, f"*.{hosts.THIS_MACHINE}", hosts.CATCH_ALL, *self._allowed}
        self._due: set[str] = set(self._always)
        self._services: dict[str, Key] = {}  # by their names
        self._known: dict[str, bytes] = {}
        self._uses: dict[str, set[Target]] = {}
        self._users: dict[Target, set[str]] = {}  # the same, by target
        self._made: WeakKeyDictionary[Rule, dict[tuple[Destination, ...], list[EncodedRoute]]] = WeakKeyDictionary()
        self._proven: WeakSet[Rule] = WeakSet()
        self._withheld: WeakKeyDictionary[Rule, str] = WeakKeyDictionary()

    def target_changed(self, target: Target) -> None:
        """A backend is reached in another way; a Service may have come, gone, or changed its ports."""
        self._due |= self._users.get(target, set())
        if target.pool is None:
            names = [service_host(target.key.name, target.key.namespace), hosts.short_name(target.key)]
            self._due |= set(names)
            for name in names:
                if self._backends.ports(target.key) is None:
                    self._services.pop(name, None)
                else:
                    self._services[name] = target.key

    async def update(self) -> bool:
        """Makes those virtual hosts anew that have changed; returns whether there are any."""
        changed, self._table.changed = self._table.changed, set()
        if any(host == ANY or host.startswith("*.") for host in changed):
            changed |= self._known.keys()
        due, self._due = self._due | changed, set()
        began = time.monotonic()
        for host in due - {ANY}:
            if time.monotonic() - began > _AT_A_TIME:  # others are due, too
                await asyncio.sleep(0)
                began = time.monotonic()
            if host in self._table.hosts or host in self._services or host in self._always:
                self._known[host] = self._make(host)
            else:
                self._known.pop(host, None)
                self._use(host, set())
        return bool(due)

    def message(self) -> bytes:
        """Returns the configuration."""
        return b"".join((_HEAD, *self._known.values()))

    def _make(self, host: str) -> bytes:
        """Returns the virtual host as a field of the configuration."""
        here, any_host = is_this_machine(host.removeprefix("*.")), self._table.rules(ANY)
        if host == hosts.CATCH_ALL:
            rules = [*hosts.for_pods(any_host), *hosts.for_addresses(any_host)]
        else:
            others = any_host if here or host in self._allowed else hosts.for_pods(any_host)
            rules = [*self._table.rules(host), *self._service_rules(host), *others]
        self._use(host, _targets(rules))
        outside = self._outside if here or host == hosts.CATCH_ALL else ()
        made = hosts.framed((route for rule in rules for route in self._translate(rule)), outside, here=here)
        found = hosts.virtual_host(hosts.domains(host), made)
        return field(RouteConfiguration, "virtual_hosts", found + (self._strangers if host == hosts.CATCH_ALL else b""))

    def _use(self, host: str, targets: set[Target]) -> None:
        """Notes what a host leads to."""
        before = self._uses.pop(host, set())
        for target in before - targets:
            self._users[target].discard(host)
            if not self._users[target]:
                del self._users[target]
        for target in targets - before:
            self._users.setdefault(target, set()).add(host)
        if targets:
            self._uses[host] = targets

    def _service_rules(self, host: str) -> list[Rule]:
        key = self._services.get(host)
        ports = self._backends.ports(key) if key is not None else None
        if key is None or ports is None:
            return []
        rules = hosts.service_rules(key, ports)
        return hosts.for_pods(rules) if host == hosts.short_name(key) else rules

    def _translate(self, rule: Rule) -> list[EncodedRoute]:
        destinations = tuple(self._backends.destination(backend) for backend in rule.backends)
        made = self._made.setdefault(rule, {})
        if destinations not in made:
            made.clear()
            withheld = self._withheld.get(rule)
            wanted = rule if withheld is None else replace(rule, refusal=Refusal(500, withheld))
            try:
                made[destinations] = [EncodedRoute.of(each) for each in routes(wanted, self._backends.destination)]
            except WRONG_TYPES as error:
                log.warning("a rule of %s is left out: %s", rule.origin, error)
                made[destinations] = []
        return made[destinations]

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
    return {backend.target for backend in backends}
