"""What goes to Services directly, by what Envoy has counted: for those who scale them by their requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from isvc.kube.objects import Key
from isvc.local.gateway.envoy.types import STAT_PREFIX

QUERY: Final = rf"/stats?format=json&filter=^({STAT_PREFIX}\.direct|cluster\..*\.upstream_rq_active)"
_NAME: Final = re.compile(
    rf"{STAT_PREFIX}\.(?P<counted>direct|direct_microseconds)\.service\.(?P<of>[^/]+/[^/]+)"
    r"|cluster\.(?P<active>[^/]+/[^/]+)\.upstream_rq_active"
)


class Traffic(NamedTuple):
    """Since Envoy's start: requests that have ended, and the seconds they took; and how many are under way."""

    ended: int = 0
    seconds: float = 0.0
    active: int = 0

    def since(self, before: Traffic) -> Traffic:
        """Returns what came after an earlier count; all of it where that was an earlier Envoy's."""
        if self.ended < before.ended:
            return self
        return self._replace(ended=self.ended - before.ended, seconds=max(0.0, self.seconds - before.seconds))


def read_traffic(statistics: bytes) -> Mapping[Key, Traffic]:
    """Returns the traffic of Services; of requests under way also those that were held, which others count."""
    found: dict[Key, Traffic] = {}
    stats: list[dict[str, Any]] = orjson.loads(statistics)["stats"]
    for stat in stats:
        name = _NAME.fullmatch(stat.get("name", ""))
        if name is None:
            continue
        key = Key(*(name["of"] or name["active"]).split("/"))
        known, value = found.get(key, Traffic()), stat["value"]
        if name["active"]:
            found[key] = known._replace(active=value)
        elif name["counted"] == "direct":
            found[key] = known._replace(ended=value)
        else:
            found[key] = known._replace(seconds=value / 1e6)
    return found
