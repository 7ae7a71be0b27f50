"""What happens to services, in one line each, on the terminal of `isvc up`."""

from __future__ import annotations

from collections.abc import Callable

from isvc.kube.objects import Key, Object, dig


class StatusPrinter:
    """Prints one line when a service becomes ready, is blocked or is gone; never the same line twice in a row."""

    def __init__(self, echo: Callable[[str], None]) -> None:
        self._echo = echo
        self._printed: dict[Key, str] = {}

    def changed(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            if before is not None and Key.of(before) in self._printed:
                del self._printed[Key.of(before)]
                self._echo(f"{Key.of(before)} is gone")
            return
        line = headline(after)
        if line and self._printed.get(Key.of(after)) != line:
            self._printed[Key.of(after)] = line
            self._echo(f"{Key.of(after)} {line}")


def headline(service: Object) -> str:
    """The state of a service; nothing while there is nothing to say yet."""
    ready = next((c for c in dig(service, "status", "conditions") or [] if c.get("type") == "Ready"), None)
    if ready is None:
        return ""
    if ready.get("status") == "True":
        return f"is ready at {dig(service, 'status', 'url')}"
    state = dig(service, "status", "modelStatus", "transitionStatus")
    failure = dig(service, "status", "modelStatus", "lastFailureInfo", "message")
    if state == "BlockedByFailedLoad":
        return f"does not load: {failure}"
    if state == "InvalidSpec" or ready.get("reason") == "ReconcileFailed":
        return f"cannot be served: {ready.get('message') or failure or ready.get('reason')}"
    return "is starting"
