"""Names that several parts of Envoy's configuration refer to."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

ADS: Final[Json] = {"ads": {}, "resource_api_version": "V3"}
"""A source of configuration: the stream that Envoy has opened to us."""

FIND_SCOPE: Final = "isvc.scope"
"""The filter that finds the routes of a host that is none of those known, or written otherwise."""

PROCESSOR: Final = "isvc.processor"
"""The filter that asks us about a request, where a route has it do so."""

ABOUT: Final = "x-isvc-about"
"""Tells the processor which cluster a request is on its way to, or why else it is asked."""

REFUSED: Final = "refused: "
"""Begins what the processor is asked about a backend to which no request may go; the reason follows."""

OWN_CLUSTER: Final = "isvc"
"""Ourselves: where configuration comes from, and answers to what is asked about requests."""

AGAIN: Final = "again"
"""Envoy itself: where a request goes whose route came only after it, once that is there."""

ENDPOINT_HEADER: Final = "x-gateway-destination-endpoint"
"""Names the endpoint that was picked for a request, as the Gateway API's inference extension has it."""

POD_HEADER: Final = "x-isvc-pod"
"""Set on requests that pods send through their proxy, and removed from all others."""

AGAIN_HEADER: Final = "x-isvc-again"
"""Set on requests that are routed a second time, and removed from all others."""

MOVED_HEADER: Final = "x-isvc-moved"
"""Set on requests whose route has changed while they were held: they are to be routed a second time."""

SCOPE_HEADER: Final = "x-isvc-scope"
"""Set on all requests to their host: what their routes are found by."""

METADATA: Final = "isvc"
"""The namespace of what the processor has noted of a request: whether it was HELD, and is to come back AGAIN."""

HELD: Final = "held"
"""Set on requests that the processor was asked about, and which others count."""

STAT_PREFIX: Final = "isvc_gateway"
"""Begins the names of what Envoy counts of requests by service."""

REFUSED_HEADER: Final = "x-isvc-gateway"
"""Tells the gateway's own answers from those of services."""


def typed(name: str, **fields: Any) -> Json:
    """Returns a message of this type where any may stand."""
    return {"@type": f"type.googleapis.com/{name}", **fields}
