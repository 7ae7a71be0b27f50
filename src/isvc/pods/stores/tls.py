"""Make client libraries trust a private CA.

Most of them read one file named by REQUESTS_CA_BUNDLE or SSL_CERT_FILE, which replaces the CAs that they know. So the
file that they are given holds the system's CAs and the mounted ones.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from pathlib import Path
from typing import Final

from isvc.pods.stores.settings import Settings

log = logging.getLogger("isvc.storage-initializer")

VARIABLES: Final = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


def accept_any(context: ssl.SSLContext) -> ssl.SSLContext:
    """Returns the context, which takes any certificate from now on, whatever name it has."""
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def export_ca_bundle(settings: Settings) -> None:
    """Sets the variables for this process, unless its pod already does."""
    missing = [name for name in VARIABLES if not os.environ.get(name)]
    if settings.ca_bundle is None or not missing:
        return
    try:
        combined = _combine(settings.ca_bundle)
    except (OSError, ssl.SSLError) as error:
        log.warning("CA certificates %s cannot be used: %s", settings.ca_bundle, error)
        return
    for name in missing:
        os.environ[name] = combined


def _combine(bundle: Path) -> str:
    context = ssl.create_default_context()
    context.load_verify_locations(bundle)
    with tempfile.NamedTemporaryFile("w", suffix=".crt", delete=False) as file:
        for known in (ssl.get_default_verify_paths().cafile, _certifi(), str(bundle)):
            if known and Path(known).exists():
                file.write(Path(known).read_text() + "\n")
    return file.name


def _certifi() -> str | None:
    """Returns the CAs that these libraries bring themselves."""
    try:
        import certifi
    except ImportError:
        return None
    return certifi.where()
