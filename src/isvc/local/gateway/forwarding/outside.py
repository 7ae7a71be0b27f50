"""The forward proxy of pods: their http:// requests to hosts that are none of this machine's Services."""

from __future__ import annotations

import asyncio
import ipaddress
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp import web

from isvc.local.gateway.forwarding.exchange import Outgoing, exchange, new_session, read_body
from isvc.local.gateway.forwarding.headers import request_headers
from isvc.local.gateway.guard import Guard
from isvc.local.gateway.requests.answers import broken_off, refusal
from isvc.local.gateway.requests.target import Target


class Outside:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._session: aiohttp.ClientSession | None = None

    async def forward(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        if not self._guard.reaches_this_machine and await _is_off_limits(target.host):
            return refusal(403, f"{target.host} is this machine, or its metadata, which pods in a sandbox do not reach")
        if self._session is None:
            self._session = new_session(None)
        headers, body = request_headers(request, target, ()), await read_body(request)
        out = Outgoing(target.path_and_query, headers, body, proxy=_upstream_proxy(target.host))
        try:
            return await exchange(self._session, request, f"http://{target.host}:{target.port}", out)
        except (aiohttp.ClientError, ValueError) as error:
            return broken_off(request) or refusal(502, f"{target.host}: {error or type(error).__name__}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


async def _is_off_limits(host: str) -> bool:
    """Whether a name leads to this machine or to link-local addresses, where clouds keep a machine's credentials."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), None)
    except OSError:
        return False
    addresses = (ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found)
    return any(address.is_loopback or address.is_unspecified or address.is_link_local for address in addresses)


def _upstream_proxy(host: str) -> str | None:
    """The proxy that this machine's environment asks for, if any."""
    return None if proxy_bypass(host) else getproxies().get("http")
