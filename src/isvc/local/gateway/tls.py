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

from isvc.local.gateway.envoy.types import Json
from isvc.wire.private_files import write_private
from isvc.wire.x509.check import is_due
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
        self._issued: OrderedDict[str, bytes] = OrderedDict()

    def secret(self, name: str) -> Json:
        """Returns the certificate for a name that a client asks for, as a secret of Envoy's; localhost's for others."""
        pair = issue_serving(self._pair, (name.lower(),) if self._is_below(name) else _HOSTS, self._now(), _LIFE)
        self._issued.pop(name, None)
        self._issued[name] = pair.certificate
        return {
            "name": name,
            "tls_certificate": {
                "certificate_chain": {"inline_string": pair.certificate.decode()},
                "private_key": {"inline_string": pair.key.decode()},
            },
        }

    def _is_below(self, name: str) -> bool:
        return name != "localhost" and _NAME.fullmatch(name) is not None

    def due(self) -> list[str]:
        """Returns names whose certificates have come of age."""
        return [name for name, certificate in self._issued.items() if is_due(certificate, self._now())]

    def forget_oldest(self) -> list[str]:
        """Returns names of which there are too many: clients can make them up."""
        most = max(0, len(self._issued) - _REMEMBERED)
        forgotten = [name for name in self._issued if name != "localhost"][:most]
        for name in forgotten:
            del self._issued[name]
        return forgotten


def _kept_authority(folder: Path, now: datetime) -> Pair:
    """Returns that of the last start, if it is whole and lasts; key and certificate are one file, replaced at once."""
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
