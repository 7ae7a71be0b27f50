"""KEDA's HTTP add-on: requests for a component that may sleep line up in the gateway, which is the interceptor here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isvc.kube.durations import limit
from isvc.kube.objects import Key, Object, dig, namespace_of
from isvc.local.autoscaling.replicas import CannotCompute
from isvc.local.gateway.routes.rules import Target
from isvc.local.keda.triggers import Requests
from isvc.local.knative.activator import Activator, Line
from isvc.serving.thirdparty import INTERCEPTOR_ROUTES
from isvc.toolkit.cache import Cache
from isvc.toolkit.clock import Clock
from isvc.toolkit.reads import Read

LONGEST_WAIT: Final = 300.0
WINDOW: Final = 60.0


class Interceptor:
    """The lines of all InterceptorRoutes. `wake` is called with the key of one for which a request waits."""

    def __init__(self, cache: Cache, activator: Activator, clock: Clock) -> None:
        self._activator, self._clock = activator, clock
        self._lines: dict[Key, Line] = {}
        self.wake: Callable[[Key], None] = lambda route: None
        cache.declare("interceptor", Read(INTERCEPTOR_ROUTES))
        cache.subscribe(INTERCEPTOR_ROUTES, self._route_changed)

    def value(self, namespace: str, requests: Requests) -> float:
        """Returns the requests under way, or those of a second. Raises CannotCompute."""
        line = self._line(namespace, requests)
        return line.demand.rate(self._clock.monotonic(), WINDOW) if requests.is_rate else line.under_way()

    def idle_seconds(self, namespace: str, requests: Requests) -> float | None:
        """Returns how long ago a request was last under way; None if none ever was. Raises CannotCompute."""
        return self._line(namespace, requests).idle_seconds()

    def _line(self, namespace: str, requests: Requests) -> Line:
        line = self._lines.get(Key(namespace, requests.route))
        if line is None:
            raise CannotCompute(f"no InterceptorRoute is named {requests.route}")
        return line

    def _route_changed(self, before: Object | None, after: Object | None) -> None:
        """Opens and closes the line of a route; requests stay in it while the route leads to the same port."""
        if before is not None and (after is None or _target(before) != _target(after)):
            self._lines.pop(Key.of(before), None)
            self._activator.close_line(Target(_target(before)[0]))
        if after is None:
            return
        route = Key.of(after)
        if route not in self._lines:
            self._lines[route] = self._activator.open_line(*_target(after), lambda _: self.wake(route))
        self._lines[route].timeout = limit(dig(after, "spec", "timeouts", "readiness") or "") or LONGEST_WAIT


def _target(route: Object) -> tuple[Key, int]:
    target = dig(route, "spec", "target") or {}
    return Key(namespace_of(route), target.get("service", "")), target.get("port") or 80
