"""Connected sockets: straight to a server, through an HTTP proxy's CONNECT, or to a path in the file system."""

from __future__ import annotations

import asyncio
import base64
import socket
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

MAX_PROXY_HEAD = 1 << 14
KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60000))


class Proxy(NamedTuple):
    host: str
    port: int
    authorization: str = ""

    @classmethod
    def parse(cls, url: str) -> Proxy:
        """Raises ValueError, in a sentence without the password, for what is not an http:// proxy."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"only http:// proxies can be used, not {parts.scheme}://{parts.hostname or ''}")
        authorization = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(parts.hostname, parts.port or 80, authorization)


async def connected_socket(host: str, port: int, proxy: Proxy | None = None) -> socket.socket:
    """`host` is a name or an address, or an absolute path, whose port does not matter."""
    if host.startswith("/"):
        return await _open(host)
    if proxy is None:
        return await _dial(host, port)
    sock = await _dial(proxy.host, proxy.port)
    try:
        await _tunnel(sock, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", proxy)
    except BaseException:
        sock.close()
        raise
    return sock


async def _open(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, path)
    except BaseException:
        sock.close()
        raise
    return sock


async def _dial(host: str, port: int) -> socket.socket:
    """Connects to the first address of `host` that accepts."""
    loop = asyncio.get_running_loop()
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = _lively_socket(family, kind, protocol)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _lively_socket(family: int, kind: int, protocol: int) -> socket.socket:
    """Returns a socket that notices within a minute or so that its peer has vanished."""
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in KEEPALIVE:
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


async def _tunnel(sock: socket.socket, target: str, proxy: Proxy) -> None:
    """Asks the proxy for a connection to `target`; reads no further than the end of its answer's head."""
    loop = asyncio.get_running_loop()
    credentials = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    await loop.sock_sendall(sock, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = await loop.sock_recv(sock, 1)
        if not piece or len(head) > MAX_PROXY_HEAD:
            raise ConnectionError(f"the proxy {proxy.host}:{proxy.port} did not answer as a proxy does")
        head += piece
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split(" ")[1:2] != ["200"]:
        raise ConnectionError(f"the proxy {proxy.host}:{proxy.port} refused the connection: {status}")
