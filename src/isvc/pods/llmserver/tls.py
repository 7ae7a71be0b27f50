"""HTTPS, and the renewal of its certificate."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from isvc.pods.llmserver.errors import ServerError
from isvc.pods.llmserver.flags import Options
from isvc.wire.x509.files import CertificateFiles

_CHECK_SECONDS = 10.0


def load(options: Options) -> CertificateFiles | None:
    """Returns the certificate that the options name, if they do."""
    if not options.ssl_certfile:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=options.ssl_ca_certs)
    context.verify_mode = ssl.VerifyMode(options.ssl_cert_reqs)
    key = Path(options.ssl_keyfile) if options.ssl_keyfile else None
    files = CertificateFiles(context, Path(options.ssl_certfile), key)
    try:
        files.load()
    except OSError as error:
        raise ServerError(f"the certificate {options.ssl_certfile} cannot be read: {error}") from None
    return files


async def renew(certificate: CertificateFiles) -> None:
    """Shows the new certificate to new connections; while it is half-written the old one stays."""
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        certificate.reload()
