"""What happens to services, in one line each, for whoever watches the terminal."""

from __future__ import annotations

from collections.abc import Callable

from isvc.kube.objects import Key, Object, dig


class News:
    """Tells when a service becomes ready, and what keeps it from it; never the same twice in a row."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told: dict[Key, str] = {}

    def changed(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            if before is not None and Key.of(before) in self._told:
                del self._told[Key.of(before)]
                self._tell(f"{Key.of(before)} is gone")
            return
        line = headline(after)
        if line and self._told.get(Key.of(after)) != line:
            self._told[Key.of(after)] = line
            self._tell(f"{Key.of(after)} {line}")


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
