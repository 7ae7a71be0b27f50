"""The predictor behind a transformer, called over HTTP in either protocol."""

from __future__ import annotations

from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from isvc.pods.modelserver.errors import PredictorError
from isvc.pods.modelserver.model import Headers
from isvc.pods.modelserver.tensors import InferRequest, decode_response
from isvc.wire.failures import message_of

_FORWARDED = ("authorization", "x-request-id", "x-b3-traceid", "traceparent")


class Predictor:
    def __init__(self, host: str, protocol: str = "v1", *, tls: bool = False, timeout: float = 600) -> None:
        self.protocol = protocol
        scheme = "https" if tls else "http"
        self._base = f"{scheme}://{host}"
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        # The environment's proxy is how names of Services resolve where there is no cluster DNS.
        self._proxy = None if proxy_bypass(host.partition(":")[0]) else getproxies().get(scheme)
        self._session: aiohttp.ClientSession | None = None

    async def infer(self, model: str, payload: dict[str, Any] | InferRequest, headers: Headers) -> Any:
        v2 = isinstance(payload, InferRequest)
        path = f"/v2/models/{model}/infer" if v2 or self.protocol == "v2" else f"/v1/models/{model}:predict"
        document = payload.to_json() if isinstance(payload, InferRequest) else payload
        answer = await self._post(path, document, headers)
        return decode_response(answer) if v2 else answer

    async def _post(self, path: str, document: dict[str, Any], headers: Headers) -> dict[str, Any]:
        forwarded = {name: headers[name] for name in _FORWARDED if name in headers}
        forwarded["Content-Type"] = "application/json"
        # Nothing of one client's goes to the next: no cookies, and no logins out of ~/.netrc.
        self._session = self._session or aiohttp.ClientSession(
            timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar()
        )
        try:
            async with self._session.post(
                self._base + path, data=orjson.dumps(document), headers=forwarded, proxy=self._proxy
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise PredictorError(502, f"predictor at {self._base}: {message_of(error)}") from None
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if response.status >= 400 or not isinstance(answer, dict):
            words = answer.get("error") if isinstance(answer, dict) else body.decode("utf-8", "replace")
            raise PredictorError(response.status if response.status >= 400 else 502, str(words))
        return answer

    async def close(self) -> None:
        if self._session:
            await self._session.close()
