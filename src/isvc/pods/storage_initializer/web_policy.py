"""Where HTTP requests may go, whatever a server answers.

A redirect is followed over HTTP and HTTPS only, never from HTTPS back to HTTP, and headers, often credentials, stay
with the origin they were meant for. Link-local addresses, where clouds serve a machine's credentials, are refused; so
is a redirect from another host to this one.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import urllib.request
from email.message import Message
from typing import IO, Any, Final
from urllib.parse import urlsplit

from isvc.pods.stores.errors import Denied

HEAD_SECONDS = 60.0
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Services of clouds for their machines that are not on link-local addresses.
_METADATA: Final = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200")))
_SENT_ANYWHERE: Final = frozenset(("Range", "If-range", "Accept-encoding", "User-agent"))


def opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """Speaks HTTP and HTTPS and nothing else, unlike urllib's own, which would open files and FTP."""
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
        _Http(),
        _Https(context=context),
    ):
        made.add_handler(handler)
    return made


def origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if after.scheme not in ("http", "https") or (before.scheme == "https" and after.scheme == "http"):
            raise Denied(f"{req.full_url}: redirects to {after.scheme}, which is not followed")
        following = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if following is None:
            return None
        if origin(newurl) != origin(req.full_url):
            following.headers = {k: v for k, v in following.headers.items() if k in _SENT_ANYWHERE}
        if (literal := _address(after.hostname or "")) is not None:  # even where a proxy would connect
            _refuse_metadata(literal)
        following.from_elsewhere = not _names_this_machine(before.hostname or "")  # type: ignore[attr-defined]
        return following


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Checked, req, checked=_what_to_check(req))


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_SecureConnection, req, context=self._context, checked=_what_to_check(req))  # type: ignore[attr-defined]


class _Checked(http.client.HTTPConnection):
    """Looks at the address it is connected to before anything is sent, so that no name can lead elsewhere."""

    def __init__(self, host: str, *, checked: str = "", **options: Any) -> None:
        super().__init__(host, **options)
        self._checked = checked

    def getresponse(self) -> http.client.HTTPResponse:
        """A head that comes byte by byte would keep every timeout from running out: it has one time for all of it."""
        sock = self.sock
        timer = threading.Timer(HEAD_SECONDS, lambda: sock.shutdown(socket.SHUT_RDWR))
        timer.start()
        try:
            return super().getresponse()
        finally:
            timer.cancel()

    def connect(self) -> None:
        if self._checked and (literal := _address(self.host)) is not None:
            _refuse_metadata(literal)
        super().connect()
        try:
            peer = ipaddress.ip_address(self.sock.getpeername()[0].partition("%")[0])
            if self._checked:
                _refuse_metadata(peer)
            if self._checked == "redirected" and _unmap(peer).is_loopback:
                raise Denied(f"{self.host}: a redirect from another host leads to this machine")
        except Denied:
            self.close()
            raise


class _SecureConnection(_Checked, http.client.HTTPSConnection):
    pass


def _what_to_check(request: urllib.request.Request) -> str:
    """Returns what to check of the peer; nothing when it is a proxy, which the pod's administrator has chosen."""
    if request.has_proxy():
        return ""
    return "redirected" if getattr(request, "from_elsewhere", False) else "direct"


def _refuse_metadata(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if _unmap(address).is_link_local or address in _METADATA:
        raise Denied(f"{address} is an address for the machine's own metadata and no place for models")


def _unmap(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return getattr(address, "ipv4_mapped", None) or address


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _names_this_machine(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)
