"""TLS contexts, and certificates in files that others replace while they are in use."""

from __future__ import annotations

import logging
import ssl
import tempfile
from pathlib import Path

from isvc.wire.x509.issue import Pair

log = logging.getLogger(__name__)


def server_context(pair: Pair) -> ssl.SSLContext:
    """Returns a context that serves with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # the module reads files alone
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    return context


def is_loadable(certificate: Path, key: Path | None = None) -> bool:
    """Returns whether the files are there and hold a certificate and its key, which may share a file."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError:  # ssl.SSLError among them
        return False
    return True


class CertificateFiles:
    """A context that serves with a certificate and its key as the files have them now, or had them when they fitted."""

    def __init__(self, context: ssl.SSLContext, certificate: Path, key: Path | None = None) -> None:
        self.context = context
        self._certificate, self._key = certificate, key
        self._loaded: object = None

    def load(self) -> None:
        """Reads the files. Raises OSError where they hold no certificate with its key."""
        self._loaded = self._state()
        # First into another context: a certificate that does not fit its key would leave ours without any.
        for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
            context.load_cert_chain(self._certificate, self._key)

    def reload(self) -> None:
        """Reads the files if they have changed, and changes nothing while they are of no use."""
        if self._state() == self._loaded:
            return
        try:
            self.load()
        except OSError as error:
            log.warning("the certificate %s is not usable: %s", self._certificate, error)
        else:
            log.info("serving with the new certificate %s", self._certificate)

    def _state(self) -> object:
        try:
            stats = [path.stat() for path in (self._certificate, self._key) if path is not None]
        except OSError as error:
            return str(error)
        return [(each.st_mtime_ns, each.st_ino, each.st_size) for each in stats]
