"""TLS for https://*.localhost: a certificate for each name that a client asks for, signed by an authority of this home.

The authority may sign for this machine's own names and addresses alone, so that whoever trusts it risks no other site.
Certificates live in memory and are replaced when they come of age; the authority is kept, since clients trust it.
"""

from __future__ import annotations

import re
import ssl
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from isvc.wire.private_files import write_private
from isvc.wire.x509.check import is_due
from isvc.wire.x509.files import server_context
from isvc.wire.x509.issue import Pair, issue_authority, issue_serving

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_NAME: Final = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*localhost", re.IGNORECASE)
_LIFE: Final = timedelta(days=30)
_REMEMBERED: Final = 256  # names
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


class Certificates:
    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        self._now = now
        self.authority = folder / "ca.crt"  # for clients to trust
        self._pair = _kept_authority(folder, now())
        self._contexts: OrderedDict[str, tuple[bytes, ssl.SSLContext]] = OrderedDict()

    def context(self) -> ssl.SSLContext:
        """What a listener serves with: the certificate depends on the name that the client asks for."""
        context = self._context_for("localhost")
        context.sni_callback = self._choose
        return context

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if name and _NAME.fullmatch(name):
            connection.context = self._context_for(name.lower())
        else:  # also the first one comes of age
            connection.context = self._context_for("localhost")

    def _context_for(self, name: str) -> ssl.SSLContext:
        certificate, context = self._contexts.pop(name, (b"", None))
        if context is None or is_due(certificate, self._now()):
            pair = issue_serving(self._pair, _HOSTS if name == "localhost" else (name,), self._now(), _LIFE)
            certificate, context = pair.certificate, server_context(pair)
            context.set_alpn_protocols(["h2", "http/1.1"])
            context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._contexts[name] = certificate, context
        while len(self._contexts) > _REMEMBERED:
            self._contexts.popitem(last=False)
        return context


def _kept_authority(folder: Path, now: datetime) -> Pair:
    """That of the last start, if it is whole and lasts. Key and certificate are one file, replaced in one step."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    bundle = folder / "authority.pem"
    try:
        key, begin, certificate = bundle.read_bytes().partition(_CERTIFICATE)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(bundle)
        pair = Pair(begin + certificate, key)
    except OSError:  # ssl.SSLError among them
        pair = Pair(b"", b"")
    if is_due(pair.certificate, now):
        pair = issue_authority("isvc on this machine", now, only_for=("localhost", "127.0.0.0/8", "::1/128"))
        write_private(bundle, pair.key + pair.certificate)
    write_private(folder / "ca.crt", pair.certificate)
    return pair
