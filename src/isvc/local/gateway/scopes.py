"""The routes that Envoy gets: scopes, of which only those are made anew that have changed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import count
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from isvc.kube.objects import Key
from isvc.local.gateway.backends import Backends
from isvc.local.gateway.envoy import guard, hosts
from isvc.local.gateway.envoy.messages import CorsPolicy, RBACPerRoute, RouteConfiguration, VirtualHost, encode, pack
from isvc.local.gateway.envoy.routes import Destination, routes
from isvc.local.gateway.envoy.scope import scope
from isvc.local.gateway.envoy.types import Json
from isvc.local.gateway.names import THIS_MACHINE, is_this_machine
from isvc.local.gateway.routes.rules import Refusal, Rule, Target
from isvc.local.gateway.routes.table import ANY, WRONG_TYPES, RouteTable
from isvc.serving.hosts import service_host
from isvc.wire.turns import room_in_turn

log = logging.getLogger("isvc.gateway")


class Scopes:
    def __init__(
        self, table: RouteTable, backends: Backends, allowed_origins: Collection[str] = (), outside: Iterable[Json] = ()
    ) -> None:
        """A rule for any host serves the hosts of allowed origins, too; `outside` says how pods reach other hosts."""
        self._table, self._backends = table, backends
        strangers = {guard.FILTER: pack(encode(RBACPerRoute, guard.unknown_hosts(allowed_origins)))}
        self._strangers = VirtualHost(typed_per_filter_config=strangers).SerializeToString()
        pages = {guard.PAGES_FILTER: pack(encode(CorsPolicy, guard.pages_policy(allowed_origins)))}
        self._pages = RouteConfiguration(typed_per_filter_config=pages).SerializeToString() if allowed_origins else b""
        allowed = {urlsplit(origin).hostname or "" for origin in allowed_origins} - {""}
        self._allowed = frozenset(allowed)
        self._outside = hosts.outside_routes(outside)
        self._always = {THIS_MACHINE, f"*.{THIS_MACHINE}", hosts.CATCH_ALL, *self._allowed}
        self._due: set[str] = set(self._always)
        self._services: dict[str, Key] = {}  # by their names
        self._known: dict[str, dict[str, bytes]] = {}  # the virtual hosts of each scope, by host
        self._numbers = count()
        self._uses: dict[str, set[Rule]] = {}
        self._users: dict[Target, set[str]] = {}  # the hosts of rules that lead there
        self._made: WeakKeyDictionary[Rule, dict[tuple[Destination, ...], list[bytes]]] = WeakKeyDictionary()
        self._unproven: set[Rule] = set()
        self._withheld: WeakKeyDictionary[Rule, str] = WeakKeyDictionary()

    def target_changed(self, target: Target) -> None:
        """Notes that a backend is reached in another way; a Service may have come, gone, or changed its ports."""
        self._due |= self._users.get(target, set())
        if target.pool is None:
            names = [service_host(target.key.name, target.key.namespace), hosts.short_name(target.key)]
            self._due |= set(names)
            for name in names:
                if self._backends.ports(target.key) is None:
                    self._services.pop(name, None)
                else:
                    self._services[name] = target.key

    async def update(self) -> set[str]:
        """Makes those scopes anew whose routes have changed; returns them."""
        changed, self._table.changed = self._table.changed, set()
        if any(host == ANY or host.startswith("*.") for host in changed):
            changed |= {host for known in self._known.values() for host in known}
        due, self._due = self._due | changed, set()
        found = set[str]()
        for host in due - {ANY}:
            await room_in_turn()
            if self._replace(host):
                found.add(_scope_of(host))
        return found

    def message(self, name: str) -> bytes | None:
        """Returns a scope as it is now; None if it is gone."""
        found = self._known.get(name)
        return scope(name, found.values(), next(self._numbers), self._pages) if found else None

    def _replace(self, host: str) -> bool:
        """Makes the virtual host of a host anew; returns whether it is another now."""
        is_there = self._table.has(host) or host in self._services or host in self._always
        rules = self._rules(host) if is_there else []
        self._use(host, set(rules))
        name = _scope_of(host)
        known = self._known.setdefault(name, {})
        before, after = known.pop(host, None), self._make(host, rules) if is_there else None
        if after is not None:
            known[host] = after
        if not known:
            del self._known[name]
        return before != after

    def _rules(self, host: str) -> list[Rule]:
        any_host = self._table.rules(ANY)
        if host == hosts.CATCH_ALL:
            return [*hosts.for_pods(any_host), *hosts.for_addresses(any_host)]
        others = any_host if _is_here(host) or host in self._allowed else hosts.for_pods(any_host)
        return [*self._table.rules(host), *self._service_rules(host), *others]

    def _make(self, host: str, rules: Iterable[Rule]) -> bytes:
        here, is_last = _is_here(host), host == hosts.CATCH_ALL
        outside = self._outside if here or is_last else ()
        made = hosts.routes_of_host((route for rule in rules for route in self._translate(rule)), outside, here=here)
        domain = host if _scope_of(host) == hosts.CATCH_ALL else hosts.CATCH_ALL
        return hosts.virtual_host(domain, made, self._strangers if is_last else b"")

    def _use(self, host: str, rules: set[Rule]) -> None:
        """Notes what a host leads to."""
        before, after = _targets(self._uses.pop(host, ())), _targets(rules)
        for target in before - after:
            self._users[target].discard(host)
            if not self._users[target]:
                del self._users[target]
        for target in after - before:
            self._users.setdefault(target, set()).add(host)
        if rules:
            self._uses[host] = rules

    def _service_rules(self, host: str) -> list[Rule]:
        key = self._services.get(host)
        ports = self._backends.ports(key) if key is not None else None
        if key is None or ports is None:
            return []
        rules = hosts.service_rules(key, ports)
        return hosts.for_pods(rules) if host == hosts.short_name(key) else rules

    def _translate(self, rule: Rule) -> list[bytes]:
        destinations = tuple(self._backends.destination(backend) for backend in rule.backends)
        made = self._made.setdefault(rule, {})
        if destinations not in made:
            made.clear()
            withheld = self._withheld.get(rule)
            wanted = rule if withheld is None else replace(rule, refusal=Refusal(500, withheld))
            try:
                made[destinations] = [hosts.encode_route(each) for each in routes(wanted, self._backends.destination)]
            except WRONG_TYPES as error:
                log.warning("a rule of %s is left out: %s", rule.origin, error)
                made[destinations] = []
            self._unproven.add(rule)
        return made[destinations]

    # -- what Envoy does not take -------------------------------------------------------------------------------------

    def unproven_rules(self) -> list[Rule]:
        """Returns the rules that Envoy has not taken yet."""
        return [rule for rule in self._unproven if rule not in self._withheld]

    def prove(self) -> None:
        """Notes that Envoy has taken everything."""
        self._unproven.clear()

    def withhold(self, rules: Iterable[Rule], reason: str) -> None:
        """Answers in place of these rules, which Envoy does not take, or of which one may be such."""
        self._forget(rules)
        for rule in rules:
            self._withheld[rule] = f"{rule.origin} asks for what Envoy refuses: {reason}"

    def release(self, rules: Iterable[Rule]) -> None:
        self._forget(rules)
        for rule in rules:
            self._withheld.pop(rule, None)

    def _forget(self, rules: Iterable[Rule]) -> None:
        forgotten = set(rules)
        for rule in forgotten:
            self._made.pop(rule, None)
        self._due |= {host for host, used in self._uses.items() if used & forgotten}


def _scope_of(host: str) -> str:
    """Returns the scope that has the routes of a host, or of a part of one. Domains share one."""
    if host.startswith("*"):
        return hosts.CATCH_ALL
    return f"{host}/" if host == THIS_MACHINE else host


def _is_here(host: str) -> bool:
    return is_this_machine(host.removeprefix("*.").partition("/")[0])


def _targets(rules: Iterable[Rule]) -> set[Target]:
    backends = (each for rule in rules for each in (*rule.backends, *(mirror.backend for mirror in rule.mirrors)))
    return {backend.target for backend in backends}
