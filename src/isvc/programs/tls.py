"""TLS of a manager's servers: settings by their Go names, the protection of metrics, and the webhooks' certificate.

That one is read from a folder that is given, or issued and renewed by the manager.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from isvc.programs.options import TLS
from isvc.toolkit.access import Access
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.failure import ConfigError
from isvc.toolkit.manager import Service
from isvc.toolkit.probes import Protection
from isvc.toolkit.rotation import Certificates, Targets
from isvc.wire.x509.files import server_context
from isvc.wire.x509.issue import AUTHORITY_LIFE, issue_authority, issue_serving

log = logging.getLogger(__name__)

VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
ROOT: Final = 0  # mounts volumes
MOUNTED: Final = Path("k8s-webhook-server") / "serving-certs"
"""Below the temporary folder: where KServe's manifests mount the Secret, which controller-runtime reads by default."""


def restrict(context: ssl.SSLContext, tls: TLS) -> None:
    """Accepts no older version and no other cipher suites than chosen; raises ConfigError if that cannot be had."""
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


def trust_clients(context: ssl.SSLContext, authority: Path | None) -> None:
    """Asks clients for a certificate of this authority, if there is one; HTTP refuses who shows none."""
    if authority is None:
        return
    try:
        context.load_verify_locations(authority)
    except OSError as error:  # ssl.SSLError among them
        raise ConfigError(f"--webhook-client-ca-file {authority} has no certificate: {error}") from None
    context.verify_mode = ssl.CERT_OPTIONAL


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


def webhook_certificates(
    client: Client, *, service: str, secret: str, namespace: str, targets: Targets, cert_dir: Path | None
) -> tuple[Path, list[Service]]:
    """Returns the folder with tls.crt and tls.key, and the services that keep it up to date.

    A certificate of our own carries the name of the webhooks' Service and is shared by all replicas through a Secret.
    """
    given = cert_dir or mounted_certificate(Path(tempfile.gettempdir()), trusted=(ROOT, os.getuid()))
    if given is not None:
        return given, []
    folder = PrivateFolder()
    host = f"{service}.{namespace}.svc"
    certificates = Certificates(
        client,
        namespace=namespace,
        secret=secret,
        hosts=(host, f"{host}.cluster.local", "localhost"),
        cert_dir=folder.path,
        targets=targets,
    )
    return folder.path, [folder, certificates]


def mounted_certificate(temporary: Path, trusted: Collection[int]) -> Path | None:
    """Returns the mounted certificate.

    Every user of the machine can make this folder, so its owner has to be trusted.
    """
    folder = temporary / MOUNTED
    if not (folder / "tls.crt").exists():
        return None
    strangers = [path for path in (folder, folder.parent) if path.stat().st_uid not in trusted]
    if strangers:
        log.warning("not using the certificate in %s: %s belongs to another user", folder, strangers[0])
        return None
    return folder


class PrivateFolder:
    """A temporary folder that only this user can enter, removed at the end, at the latest when the process ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="isvc-webhooks-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)

    async def start(self) -> None:
        """Does nothing: the folder is there from the beginning."""

    async def stop(self) -> None:
        self._folder.cleanup()
