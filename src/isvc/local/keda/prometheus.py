"""Values of Prometheus queries, over its HTTP API."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from isvc.local.autoscaling.replicas import CannotCompute
from isvc.local.gateway.names import cluster_name
from isvc.local.keda.triggers import Prometheus
from isvc.wire.failures import message_of

if TYPE_CHECKING:
    import aiohttp

_SECONDS = 3.0  # KEDA's own limit
_LARGEST = 1 << 20


class PrometheusClient:
    """Servers with a name of the cluster are asked through the gateway, which knows where their pods are."""

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None

    async def value(self, trigger: Prometheus) -> float:
        """Raises CannotCompute."""
        import aiohttp  # the start does without

        query = {"query": trigger.query, **({"namespace": trigger.namespace} if trigger.namespace else {})}
        host = urlsplit(trigger.server).hostname or ""
        proxy = self._proxy if cluster_name(host) else None
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS), trust_env=False)
        try:
            async with self._session.get(f"{trigger.server}/api/v1/query", params=query, proxy=proxy) as answer:
                body = await answer.content.read(_LARGEST)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            reason = message_of(error)
            raise CannotCompute(f"Prometheus at {trigger.server} cannot be asked: {reason}") from None
        if answer.status != 200:
            raise CannotCompute(
                f"Prometheus at {trigger.server} answers {answer.status}: {body[:200].decode(errors='replace')}"
            )
        return read_value(body, trigger)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def read_value(body: bytes, trigger: Prometheus) -> float:
    """Returns the one value of an answer; none at all is 0 unless the trigger says otherwise. Raises CannotCompute."""
    try:
        data: Any = orjson.loads(body)["data"]
        found = data["result"] if data["resultType"] == "vector" else [{"value": data["result"]}]
        values = [float(each["value"][1]) for each in found]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, IndexError):
        raise CannotCompute(f"Prometheus at {trigger.server} answers what is no value of a query") from None
    if len(values) > 1:
        raise CannotCompute(f"prometheus query {trigger.query} returned multiple elements")
    value = values[0] if values else math.nan
    if math.isfinite(value):
        return value
    if trigger.null_is_zero:
        return 0.0
    raise CannotCompute(f"prometheus query {trigger.query} has no value")
