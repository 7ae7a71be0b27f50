"""HTTPS, and the renewal of its certificate."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

from isvc.pods.llmserver.errors import ServerError
from isvc.pods.llmserver.flags import Options

_CHECK_SECONDS = 10.0


def context(options: Options) -> ssl.SSLContext | None:
    if not options.ssl_certfile:
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=options.ssl_ca_certs)
    made.verify_mode = ssl.VerifyMode(options.ssl_cert_reqs)
    _load(made, options)
    return made


def _load(context: ssl.SSLContext, options: Options) -> None:
    assert options.ssl_certfile is not None
    try:
        context.load_cert_chain(options.ssl_certfile, options.ssl_keyfile)
    except (OSError, ssl.SSLError) as error:
        raise ServerError(f"the certificate {options.ssl_certfile} cannot be read: {error}") from None


async def renew(context: ssl.SSLContext, options: Options) -> None:
    """New connections see the new certificate; while it is half-written the old one stays."""

    def seen() -> list[int]:
        files = [Path(name) for name in (options.ssl_certfile, options.ssl_keyfile) if name]
        return [file.stat().st_mtime_ns if file.exists() else 0 for file in files]

    loaded = seen()
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        if (found := seen()) != loaded:
            with contextlib.suppress(ServerError):
                _load(context, options)
                loaded = found
