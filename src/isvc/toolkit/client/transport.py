"""One HTTP exchange with the API server, and everything that can go wrong on the way."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson

from isvc.kube.errors import ApiError, Unauthorized, from_status
from isvc.toolkit.client.credentials import Credentials
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.client.write_limiter import WriteLimiter
from isvc.toolkit.clock import Clock
from isvc.toolkit.failure import ConfigError, Unreachable
from isvc.wire.failures import message_of
from isvc.wire.http1.client_connection import Reply
from isvc.wire.http1.dial import Proxy
from isvc.wire.http1.message import encode_request, header_lines
from isvc.wire.http1.pool import Pool, Streamed
from isvc.wire.turns import room_in_turn

CONNECTIONS = 32
WRITES_AT_ONCE = 8
IDLE_SECONDS = 75.0  # kube-apiserver closes idle connections after 90
HEADER_SECONDS = 30.0
MAX_RETRIES = 10
MAX_REFUSAL = 1 << 20
RETRYABLE = frozenset((429, 500, 502, 503, 504))  # and only if the server says when

Fence = Callable[[], None]


class Answered(NamedTuple):
    """An answer of the API server: to what, how long it took, and when it came, in seconds since 1970."""

    method: str
    target: str
    status: int
    seconds: float
    ended: float


Observer = Callable[[Answered], None]


class Call(NamedTuple):
    method: str
    target: str
    body: bytes | None
    headers: Mapping[str, str] | None
    within: float  # seconds, with all retries
    fenced: bool = False  # a controller's write: checked against the lease, and limited in number
    patience: float = 0.0  # seconds for which other writes may go first


class Transport:
    def __init__(self, config: ClusterConfig, clock: Clock) -> None:
        self.config = config
        self.fence: Fence | None = None
        self.observer: Observer | None = None
        self._clock = clock
        self._write_limiter = WriteLimiter(WRITES_AT_ONCE, clock.monotonic)
        self._credentials = Credentials(config, clock)
        self._address = urlsplit(config.server)
        self._headers = header_lines(
            [("Host", self._address.netloc), ("User-Agent", user_agent()), ("Accept-Encoding", "identity")]
        )
        self._pool: Pool | None = None

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()

    async def exchange(self, call: Call) -> bytes:
        """Sends and waits for a success, and again for as long as the server asks for it and the deadline allows."""
        deadline = self._clock.monotonic() + call.within
        renewed = False
        for attempt in range(MAX_RETRIES + 1):
            if call.fenced:  # waiting for our own writes does not count: it says nothing about the server
                deadline += await self._admit(call.patience)
            try:
                reply = await self._send(call, deadline)
            finally:
                if call.fenced:
                    self._write_limiter.release()
            if reply.status < 300:
                await room_in_turn()  # answers come together, and with each goes on who asked
                return reply.body
            if reply.status == 401 and not renewed and await self._credentials.renew(rejected=True):
                renewed = True
                continue
            wait = _retry_after(reply) if reply.status in RETRYABLE else None
            if wait is None or attempt == MAX_RETRIES or self._clock.monotonic() + wait >= deadline:
                raise self._refusal(reply)
            await self._clock.sleep(wait)
        raise AssertionError("unreachable")

    async def _send(self, call: Call, deadline: float) -> Reply:
        if not self._credentials.fresh:
            await self._credentials.renew()
        if call.fenced and self.fence is not None:
            self.fence()
        now = self._clock.monotonic()
        try:
            async with asyncio.timeout(deadline - now):
                reply = await self._request(call)
        except (OSError, EOFError) as error:
            late = f"no answer to {call.method} {call.target} before its deadline"
            raise self._connection_error(error, late) from error
        self._tell(call.method, call.target, reply.status, now)
        return reply

    def _tell(self, method: str, target: str, status: int, started: float) -> None:
        if self.observer is not None:
            seconds = self._clock.monotonic() - started
            self.observer(Answered(method, target, status, seconds, self._clock.now().timestamp()))

    async def _admit(self, patience: float) -> float:
        """Waits until one more write may be under way; returns for how many seconds."""
        began = self._clock.monotonic()
        await self._write_limiter.acquire(began + patience)
        return self._clock.monotonic() - began

    async def _request(self, call: Call) -> Reply:
        request = self._encode(call.method, call.target, call.headers, call.body)
        return await self._connections().exchange(call.method, request, self._credentials.tls)

    @asynccontextmanager
    async def stream(
        self,
        target: str,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
        post: bytes | None = None,
        within: float | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yields the answer to a GET, or to a POST of a body, as it comes, in pieces of any size.

        `within` is the time for its headers, `silence` the longest pause between two pieces.
        """
        if not self._credentials.fresh:
            await self._credentials.renew()
        method = "GET" if post is None else "POST"
        request, started = self._encode(method, target, headers, post), self._clock.monotonic()
        limit = HEADER_SECONDS if within is None else within
        try:
            async with self._connections().stream(request, self._credentials.tls, limit) as response:
                self._tell(method, target, response.head.status, started)
                if response.head.status >= 300:
                    if response.head.status == 401:
                        await self._credentials.renew(rejected=True)
                    raise self._refusal(response.head._replace(body=await _read_refusal(response)))
                yield response.pieces(silence)
        except (OSError, EOFError) as error:
            raise self._connection_error(error, f"silence on {method} {target}") from error

    def _encode(self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes | None) -> bytes:
        lines = self._headers + self._credentials.headers
        if not headers or "Accept" not in headers:
            lines += "Accept: application/json\r\n"
        if headers:
            lines += header_lines(headers.items())
        return encode_request(method, self._address.path + target, lines, body)

    def _connections(self) -> Pool:
        if self._pool is None:
            self._pool = Pool(
                self.config.socket or self._address.hostname or "",
                self._address.port or (443 if self._address.scheme == "https" else 80),
                limit=CONNECTIONS,
                idle_seconds=IDLE_SECONDS,
                server_name=self.config.server_name,
                proxy=self._proxy(),
            )
        return self._pool

    def _proxy(self) -> Proxy | None:
        return _proxy(self.config.proxy or _proxy_of(self.config.server))

    def _refusal(self, reply: Reply) -> ApiError | Unreachable:
        try:
            body = orjson.loads(reply.body)
        except ValueError:
            body = reply.body.decode(errors="replace").strip()
        if not isinstance(body, dict | str):
            body = f"{self.config.server} answered {reply.status} and does not say why, as API servers do"
        if reply.headers.get("content-type", "").startswith("text/html"):
            body = f"{self.config.server} answered {reply.status} with a web page, as proxies do and API servers do not"
            if reply.status not in (401, *RETRYABLE):  # a proxy's 404 does not mean that an object is gone
                return Unreachable(body)
        error = from_status(reply.status, body)
        if (wait := _retry_after(reply)) is not None:
            error.details.setdefault("retryAfterSeconds", wait)
        unknown = reply.status == 401 or (reply.status == 403 and "system:anonymous" in error.message)
        if unknown and (problem := self._credentials.certificate_problem()):
            error = Unauthorized(f"{error.message}: {problem}", details=error.details)
        return error

    def _connection_error(self, error: OSError | EOFError, late: str) -> Unreachable:
        """Says what went wrong on a connection; `late` says what a timeout means."""
        if isinstance(error, TimeoutError):
            return Unreachable(f"{self.config.server}: {late}")
        proxy = self._proxy()
        where = f"{self.config.server} through the proxy {proxy.host}:{proxy.port}" if proxy else self.config.server
        return Unreachable(f"cannot reach {where}: {_cause(error, self._credentials)}")


async def _read_refusal(response: Streamed) -> bytes:
    """Reads as much of the body as a refusal can reasonably have."""
    body = b""
    async with asyncio.timeout(HEADER_SECONDS):
        async for piece in response.pieces():
            body += piece
            if len(body) > MAX_REFUSAL:
                break
    return body


def _cause(error: BaseException, credentials: Credentials) -> str:
    """Returns the useful part of the error: ssl repeats itself, and asyncio names the address again."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.verify_message}"
    if problem := credentials.certificate_problem():
        return problem  # a server that minds it may just hang up
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower() if "Connect call failed" not in error.strerror else "connection refused"
    return message_of(error)


def _retry_after(reply: Reply) -> float | None:
    value = reply.headers.get("retry-after")
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return 1.0  # a date: rare, and a second is a fair first try


def _proxy(url: str | None) -> Proxy | None:
    try:
        return Proxy.parse(url) if url else None
    except ValueError as error:
        raise ConfigError(f"the proxy of the cluster: {error}") from None


def _proxy_of(server: str) -> str | None:
    """Returns the proxy that the environment names (HTTPS_PROXY, NO_PROXY); never one for this machine itself."""
    scheme, _, rest = server.partition("://")
    host = rest.partition("/")[0].rpartition(":")[0] or rest
    if host in ("localhost", "127.0.0.1", "[::1]") or proxy_bypass(host):
        return None
    return getproxies().get(scheme)


def user_agent() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"isvc/{version('isvc')}"
    except PackageNotFoundError:  # run from its source, not installed
        return "isvc/unknown"
