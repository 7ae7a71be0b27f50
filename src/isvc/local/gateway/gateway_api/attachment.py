"""Which Gateways this machine's gateway implements, and which of their listeners take a route.

The gateway has one port and speaks HTTP. A Gateway of its class is accepted if one of its listeners asks for just that;
a route, if it refers to such a listener that allows its namespace and shares a host with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from isvc.kube.objects import Key, Object, dig, labels_of, namespace_of
from isvc.kube.selectors import LabelSelector, SelectorError
from isvc.local.gateway.gateway_api.references import Reason, refuse_reference
from isvc.serving.thirdparty import GATEWAYS, HTTP_ROUTES

CONTROLLER: Final = "local.isvc.dev/gateway"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A reference of a route to a Gateway of ours: what keeps it from being taken, else the hosts it is taken for."""

    parent: Object
    problem: Reason | None
    hosts: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gateways:
    """The Gateways of this machine's class, and what it takes to attach routes to them."""

    port: int
    by_key: Mapping[Key, Object] = field(default_factory=dict)
    namespaces: Mapping[str, Object] = field(default_factory=dict)
    grants: tuple[Object, ...] = ()

    @classmethod
    def of(
        cls,
        port: int,
        classes: Iterable[Object],
        gateways: Iterable[Object],
        namespaces: Iterable[Object],
        grants: Iterable[Object] = (),
    ) -> Gateways:
        ours = {each["metadata"]["name"] for each in classes if dig(each, "spec", "controllerName") == CONTROLLER}
        found = {Key.of(each): each for each in gateways if dig(each, "spec", "gatewayClassName") in ours}
        return cls(port, found, {each["metadata"]["name"]: each for each in namespaces}, tuple(grants))

    def attachments(self, route: Object) -> list[Attachment]:
        """Returns one for each reference of the route to a Gateway of ours."""
        parents = dig(route, "spec", "parentRefs") or ()
        return [self._attach(route, parent, gateway) for parent in parents if (gateway := self._gateway(route, parent))]

    def hosts(self, route: Object) -> list[str]:
        """Returns the hosts that the route is served for, "" for any; none where no Gateway takes it."""
        return list(dict.fromkeys(host for each in self.attachments(route) for host in each.hosts))

    def refuse(self, route: Object, reference: Object) -> Reason | None:
        """Returns why the route may not name a backend, if it may not."""
        return refuse_reference(reference, namespace_of(route), self.grants)

    def listener_problem(self, listener: Object) -> Reason | None:
        if listener.get("protocol") != "HTTP":
            return Reason("UnsupportedProtocol", f"the gateway of this machine speaks HTTP, not {listener['protocol']}")
        if listener.get("port") != self.port:
            return Reason("PortUnavailable", f"the gateway of this machine listens on port {self.port} alone")
        return None

    def _gateway(self, route: Object, parent: Object) -> Object | None:
        if (parent.get("group", GATEWAYS.group), parent.get("kind", GATEWAYS.kind)) != (GATEWAYS.group, GATEWAYS.kind):
            return None
        return self.by_key.get(parent_key(route, parent))

    def _attach(self, route: Object, parent: Object, gateway: Object) -> Attachment:
        named = [each for each in dig(gateway, "spec", "listeners") or () if _is_named(each, parent)]
        if not named:
            return _refused(parent, "NoMatchingParent", "the Gateway has no listener of that name or port")
        usable = [listener for listener in named if self.listener_problem(listener) is None]
        if not usable:
            problem = self.listener_problem(named[0])
            assert problem is not None
            return _refused(parent, "NoMatchingParent", f"listener {named[0]['name']}: {problem.message}")
        allowed = [listener for listener in usable if self._allows(listener, gateway, route)]
        if not allowed:
            message = f"no listener takes routes of namespace {namespace_of(route)}"
            return _refused(parent, "NotAllowedByListeners", message)
        taken = [(each["name"], hosts) for each in allowed if (hosts := shared_hosts(each.get("hostname"), route))]
        if not taken:
            return _refused(parent, "NoMatchingListenerHostname", "no listener is for a host of the route")
        every = dict.fromkeys(host for _, shared in taken for host in shared)
        return Attachment(parent, None, tuple(every), tuple(name for name, _ in taken))

    def _allows(self, listener: Object, gateway: Object, route: Object) -> bool:
        kinds = dig(listener, "allowedRoutes", "kinds")
        if kinds and not any(kind.get("kind") == HTTP_ROUTES.kind for kind in kinds):
            return False
        match dig(listener, "allowedRoutes", "namespaces", "from") or "Same":
            case "All":
                return True
            case "Selector":
                selector = dig(listener, "allowedRoutes", "namespaces", "selector") or {}
                return _selects(selector, self.namespaces.get(namespace_of(route), {"metadata": {}}))
            case _:
                return namespace_of(route) == namespace_of(gateway)


def parent_key(route: Object, parent: Object) -> Key:
    return Key(parent.get("namespace") or namespace_of(route), parent.get("name", ""))


def shared_hosts(listener_host: str | None, route: Object) -> list[str]:
    """Returns the hosts that both are for; of a wildcard and a host below it, the narrower one. "" stands for any."""
    wanted = dig(route, "spec", "hostnames") or [""]
    if not listener_host:
        return list(wanted)
    pairs = ((host, listener_host) if _is_within(host, listener_host) else (listener_host, host) for host in wanted)
    return [narrow for narrow, wide in pairs if _is_within(narrow, wide)]


def _is_within(host: str, pattern: str) -> bool:
    return not pattern or host == pattern or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def _is_named(listener: Object, parent: Object) -> bool:
    name, port = parent.get("sectionName"), parent.get("port")
    return (not name or listener.get("name") == name) and (not port or listener.get("port") == port)


def _selects(selector: Object, namespace: Object) -> bool:
    try:
        return LabelSelector.from_spec(selector).matches(labels_of(namespace))
    except SelectorError:
        return False


def _refused(parent: Object, reason: str, message: str) -> Attachment:
    return Attachment(parent, Reason(reason, message))
