"""What happens to services, in one line each, on the terminal of `isvc up`."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from isvc.api.resources import INFERENCE_SERVICES
from isvc.insight.diagnosis.sentence import state
from isvc.kube.objects import Key, Object, dig
from isvc.kube.readiness import is_observed, is_ready
from isvc.toolkit.clock import Clock

FIRST_LOOK: Final = 3.0  # seconds without a change after which a service that is not ready is looked into
LATEST_LOOK: Final = 15.0  # seconds, however much it changes
LONGEST_PAUSE: Final = 30.0
_MANY: Final = 5  # services that are not ready: they are being created
_TURNS_BETWEEN_LOOKS: Final = 5  # then
_TURN: Final = 1.0

Describe = Callable[[Object], Awaitable[str]]


@dataclass(slots=True)
class _Unready:
    service: Object
    due: float
    latest: float
    pause: float = FIRST_LOOK


class StatusPrinter:
    """Prints one line when a service becomes ready, is blocked or is gone; never the same line twice in a row.

    What blocks a service takes a while to find out, so `describe` is asked in the background, and less and less often.
    """

    def __init__(self, echo: Callable[[str], None], describe: Describe, clock: Clock) -> None:
        self._echo, self._describe, self._clock = echo, describe, clock
        self._printed: dict[str, str] = {}
        self._unready: dict[str, _Unready] = {}

    def changed(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            self._print_gone(before)
            return
        name = _name(after)
        if is_ready(after):
            self._unready.pop(name, None)
            self._print(name, state(after, ()))
            return
        known = self._unready.get(name)
        now = self._clock.monotonic()
        latest = known.latest if known else now + LATEST_LOOK
        self._unready[name] = _Unready(after, max(now, min(latest, now + FIRST_LOOK)), latest)
        if is_observed(after) and dig(after, "status", "conditions") and (known is None or name not in self._printed):
            self._print(name, state(after, ()))

    async def run(self) -> None:
        """Looks into services that stay unready, for ever."""
        for turn in itertools.count():
            await self._clock.sleep(_TURN)
            now = self._clock.monotonic()
            due = sorted((unready.due, name) for name, unready in self._unready.items() if unready.due <= now)
            if len(due) > _MANY:  # whoever has waited longest is next, so that each has its turn
                due = due[: 0 if turn % _TURNS_BETWEEN_LOOKS else 1]
            for _, name in due:
                await self._look_into(name)

    async def _look_into(self, name: str) -> None:
        unready = self._unready.get(name)
        if unready is None:  # ready or gone, while another one was looked into
            return
        text = await self._describe(unready.service)
        if self._unready.get(name) is unready:  # it has not changed meanwhile
            self._print(name, text)
            unready.pause = min(2 * unready.pause, LONGEST_PAUSE)
            unready.due = unready.latest = self._clock.monotonic() + unready.pause

    def _print_gone(self, service: Object | None) -> None:
        if service is not None:
            self._unready.pop(_name(service), None)
            if self._printed.pop(_name(service), None):
                self._echo(f"{_name(service)} is gone")

    def _print(self, name: str, text: str) -> None:
        if self._printed.get(name) != text:
            self._printed[name] = text
            self._echo(f"{name} {text}")


def _name(service: Object) -> str:
    kind = service.get("kind", INFERENCE_SERVICES.kind)
    return str(Key.of(service)) if kind == INFERENCE_SERVICES.kind else f"{kind} {Key.of(service)}"
