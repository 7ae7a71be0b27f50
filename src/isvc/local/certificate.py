"""The certificate that the webhooks of `isvc up` show to the API server.

Key, certificate and authority are one file, replaced in one step; tls.crt and tls.key, which the webhook server reads,
are written from it at every start. So no kill in between leaves a key that fits another certificate.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Final

from isvc.wire.private_files import write_private
from isvc.wire.x509.check import is_due
from isvc.wire.x509.files import is_loadable
from isvc.wire.x509.issue import issue_authority, issue_serving

HOSTS: Final = ("localhost", "127.0.0.1")
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----\n", re.DOTALL)


def serving_certificate(folder: Path, now: datetime) -> bytes:
    """Fills the folder with tls.crt and tls.key, made anew unless they fit and last; returns the authority to trust."""
    bundle = folder / "bundle.pem"
    if not _is_sound(bundle, now):
        authority = issue_authority("isvc webhooks", now)
        pair = issue_serving(authority, HOSTS, now)
        write_private(bundle, pair.key + pair.certificate + authority.certificate)
    key, certificate, trusted = (block[0] for block in _BLOCK.finditer(bundle.read_bytes()))
    write_private(folder / "tls.crt", certificate)
    write_private(folder / "tls.key", key)
    return trusted


def _is_sound(bundle: Path, now: datetime) -> bool:
    try:
        content = bundle.read_bytes()
    except OSError:
        return False
    blocks = [block[1] for block in _BLOCK.finditer(content)]
    return (
        blocks == [b"PRIVATE KEY", b"CERTIFICATE", b"CERTIFICATE"]
        and is_loadable(bundle)
        and not is_due(content[content.index(b"-----BEGIN CERT") :], now, HOSTS)
    )
