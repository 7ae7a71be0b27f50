"""Whether the router's pod is part of an Istio mesh, where the sidecar and not the router speaks TLS."""

from __future__ import annotations

import aiohttp
from yarl import URL

_SIDECAR = URL("http://localhost:15000")
_PATIENCE = aiohttp.ClientTimeout(total=3)


class Mesh:
    """Asks once, at the first request over TLS: at the start the sidecar may not be there yet."""

    def __init__(self) -> None:
        self._joined: bool | None = None

    async def target(self, url: URL, session: aiohttp.ClientSession) -> URL:
        if url.scheme != "https":
            return url
        if self._joined is None:
            self._joined = await _sidecar_answers(session)
        return url.with_scheme("http") if self._joined else url


async def _sidecar_answers(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.get(_SIDECAR, timeout=_PATIENCE) as response:
            return response.status == 200
    except (aiohttp.ClientError, OSError):
        return False
