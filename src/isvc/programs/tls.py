"""TLS of the servers: settings by their Go names, and the protection of metrics."""

from __future__ import annotations

import ssl
from typing import Final

from isvc.programs.options import TLS
from isvc.toolkit.access import Access
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.failure import ConfigError
from isvc.toolkit.probes import Protection
from isvc.wire.x509.files import server_context
from isvc.wire.x509.issue import AUTHORITY_LIFE, issue_authority, issue_serving

VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


def restrict(context: ssl.SSLContext, tls: TLS) -> None:
    """Accept no older version and no other cipher suites than chosen; raises ConfigError if that cannot be had."""
    minimum = tls.min_version or "VersionTLS12"
    if minimum not in VERSIONS:
        raise ConfigError(f"--tls-min-version must be one of {', '.join(VERSIONS)}, got {minimum!r}")
    context.minimum_version = VERSIONS[minimum]
    if not tls.cipher_suites:
        return
    if minimum == "VersionTLS13":
        raise ConfigError("--tls-cipher-suites cannot be chosen with VersionTLS13, which has its own")
    try:
        context.set_ciphers(":".join(map(openssl_name, tls.cipher_suites)))
    except ssl.SSLError:
        suites = ",".join(tls.cipher_suites)
        raise ConfigError(f"--tls-cipher-suites: none of these is known: {suites}") from None


def protection(client: Client, tls: TLS) -> Protection:
    """Returns a self-signed certificate, as in controller-runtime, and the API server's word on who may read."""
    now = SystemClock().now()
    pair = issue_serving(issue_authority("isvc metrics", now), ("localhost",), now, life=AUTHORITY_LIFE)
    context = server_context(pair)
    restrict(context, tls)
    return Protection(context, Access(client))


def openssl_name(suite: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`, as Go calls it → `ECDHE-RSA-AES128-GCM-SHA256`."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_128", "AES128").replace("AES_256", "AES256")
    return name.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305").replace("_", "-")
