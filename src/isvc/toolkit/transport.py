"""One HTTP exchange with the API server, and everything that can go wrong on the way.

Two connection pools share one TLS context: a bounded one for requests, and one for streams, which stay open for
minutes. aiohttp is imported when the first connection is opened, so that a command line need not pay for it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import orjson
from multidict import CIMultiDict

from isvc.kube.errors import ApiError, Unauthorized, from_status
from isvc.toolkit.clock import Clock
from isvc.toolkit.credentials import Credentials
from isvc.toolkit.failure import ClusterError, Unreachable
from isvc.toolkit.kubeconfig import ClusterConfig
from isvc.toolkit.write_limiter import WriteLimiter

if TYPE_CHECKING:
    import aiohttp

CONNECTIONS = 32
WRITES_AT_ONCE = 8
IDLE_SECONDS = 75.0  # kube-apiserver closes idle connections after 90
CONNECT_SECONDS = 10.0
HEADER_SECONDS = 30.0
MAX_RETRIES = 10
RETRYABLE = frozenset((429, 500, 502, 503, 504))  # and only if the server says when

Fence = Callable[[], None]
Observer = Callable[[str, int], None]


class Call(NamedTuple):
    method: str
    target: str
    body: bytes | None
    headers: dict[str, str] | None
    within: float  # seconds, with all retries
    fenced: bool = False  # a controller's write: checked against the lease, and limited in number
    patience: float = 0.0  # seconds for which other writes may go first


class Reply(NamedTuple):
    status: int
    retry_after: str | None
    body: bytes


class Transport:
    def __init__(self, config: ClusterConfig, clock: Clock) -> None:
        self.config = config
        self.fence: Fence | None = None
        self.observer: Observer | None = None
        self._clock = clock
        self._write_limiter = WriteLimiter(WRITES_AT_ONCE, clock.monotonic)
        self._credentials = Credentials(config, clock)
        self._sessions: tuple[aiohttp.ClientSession, aiohttp.ClientSession] | None = None

    async def close(self) -> None:
        if self._sessions is not None:
            sessions, self._sessions = self._sessions, None
            for session in sessions:
                await session.close()
            await asyncio.sleep(0)  # lets TLS connections say goodbye

    async def exchange(self, call: Call) -> bytes:
        """Send and wait for a success; retried for as long as the server asks for it and the deadline allows."""
        deadline = self._clock.monotonic() + call.within
        renewed = False
        for attempt in range(MAX_RETRIES + 1):
            reply = await self._send(call, deadline)
            if reply.status < 300:
                return reply.body
            if reply.status == 401 and not renewed and await self._credentials.renew(rejected=True):
                renewed = True
                continue
            wait = _seconds(reply.retry_after) if reply.status in RETRYABLE else None
            if wait is None or attempt == MAX_RETRIES or self._clock.monotonic() + wait >= deadline:
                raise self._refusal(reply)
            await self._clock.sleep(wait)
        raise AssertionError("unreachable")

    async def _send(self, call: Call, deadline: float) -> Reply:
        if not self._credentials.fresh:
            await self._credentials.renew()
        now = self._clock.monotonic()
        try:
            async with asyncio.timeout(deadline - now):
                if not call.fenced:
                    reply = await self._request(call)
                else:
                    async with self._write_limiter.slot(now + call.patience):
                        if self.fence is not None:
                            self.fence()
                        reply = await self._request(call)
        except TimeoutError:
            missed = f"{self.config.server}: no answer to {call.method} {call.target} before its deadline"
            raise Unreachable(missed) from None
        except (OSError, EOFError) as error:
            raise self._failure(error) from error
        except Exception as error:
            raise self._translated(error) from error
        if self.observer is not None:
            self.observer(call.method, reply.status)
        return reply

    async def _request(self, call: Call) -> Reply:
        url, headers, options = self._url(call.target), self._headers(call.headers), self._options()
        session = self._open()[0]
        async with session.request(call.method, url, data=call.body, headers=headers, **options) as response:
            return Reply(response.status, response.headers.get("Retry-After"), await response.read())

    @asynccontextmanager
    async def stream(
        self, target: str, headers: dict[str, str] | None = None, silence: float | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of a GET as it comes, in pieces of any size; `silence` is the longest pause between two."""
        import aiohttp

        if not self._credentials.fresh:
            await self._credentials.renew()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        url, sent = self._url(target), self._headers(headers)
        try:
            async with asyncio.timeout(HEADER_SECONDS):
                response = await self._open()[1].get(url, headers=sent, timeout=timeout, **self._options())
            async with response:
                if self.observer is not None:
                    self.observer("GET", response.status)
                if response.status >= 300:
                    reply = Reply(response.status, response.headers.get("Retry-After"), await response.read())
                    if reply.status == 401:
                        await self._credentials.renew(rejected=True)
                    raise self._refusal(reply)
                yield response.content.iter_any()
        except (ApiError, ClusterError):
            raise
        except TimeoutError as error:
            raise Unreachable(f"{self.config.server}: silence on GET {target}") from error
        except (OSError, EOFError) as error:
            raise self._failure(error) from error
        except Exception as error:
            raise self._translated(error) from error

    def _open(self) -> tuple[aiohttp.ClientSession, aiohttp.ClientSession]:
        if self._sessions is None:
            import aiohttp

            def session(limit: int) -> aiohttp.ClientSession:
                connector = aiohttp.TCPConnector(
                    limit=limit, keepalive_timeout=IDLE_SECONDS, ttl_dns_cache=60, socket_factory=_lively_socket
                )
                return aiohttp.ClientSession(
                    connector=connector,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    headers={"User-Agent": user_agent(), "Accept": "application/json", "Accept-Encoding": "identity"},
                    skip_auto_headers=("Content-Type",),
                    auto_decompress=False,
                    read_bufsize=2**18,
                    proxy=self.config.proxy or _proxy_of(self.config.server),
                )

            self._sessions = session(CONNECTIONS), session(0)
        return self._sessions

    def _url(self, target: str) -> Any:
        from yarl import URL

        return URL(self.config.server + target, encoded=True)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"allow_redirects": False}
        if self._credentials.tls is not None:
            options["ssl"] = self._credentials.tls
        if self.config.server_name:
            options["server_hostname"] = self.config.server_name
        return options

    def _headers(self, more: dict[str, str] | None) -> CIMultiDict[str]:
        if not more:
            return self._credentials.headers
        headers = self._credentials.headers.copy()
        headers.update(more)
        return headers

    def _refusal(self, reply: Reply) -> ApiError:
        try:
            body = orjson.loads(reply.body)
        except ValueError:
            body = reply.body.decode(errors="replace").strip()
        error = from_status(reply.status, body)
        if (wait := _seconds(reply.retry_after)) is not None:
            error.details.setdefault("retryAfterSeconds", wait)
        unknown = reply.status == 401 or (reply.status == 403 and "system:anonymous" in error.message)
        if unknown and (problem := self._credentials.certificate_problem()):
            error = Unauthorized(f"{error.message}: {problem}", details=error.details)
        return error

    def _translated(self, error: Exception) -> Exception:
        """aiohttp's errors that are no OSError, as ours; all others as they are."""
        import aiohttp

        return self._failure(error) if isinstance(error, aiohttp.ClientError) else error

    def _failure(self, error: BaseException) -> Unreachable:
        return Unreachable(f"cannot reach {self.config.server}: {_cause(error, self._credentials)}")


def _cause(error: BaseException, credentials: Credentials) -> str:
    """The innermost useful sentence: aiohttp wraps OSErrors, and ssl repeats itself."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {inner.verify_message}"
    if problem := credentials.certificate_problem():
        return problem  # a server that minds it may just hang up
    if isinstance(inner, ssl.SSLError):
        return f"TLS failed: {inner.reason or inner}"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror.lower() if "Connect call failed" not in inner.strerror else "connection refused"
    if type(inner).__name__ in ("ClientPayloadError", "ServerDisconnectedError"):
        return "the connection was cut"
    return str(inner) or type(inner).__name__


def _seconds(retry_after: str | None) -> float | None:
    try:
        return max(0.0, float(retry_after)) if retry_after else None
    except ValueError:
        return 1.0  # a date: rare, and a second is a fair first try


def _lively_socket(info: Any) -> socket.socket:
    """A socket that notices within a minute or so that its peer has vanished."""
    connection = socket.socket(*info[:3])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60000)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connection


def _proxy_of(server: str) -> str | None:
    """As the environment has it (HTTPS_PROXY, NO_PROXY); never for this machine itself."""
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
