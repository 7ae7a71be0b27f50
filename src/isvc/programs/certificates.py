"""The webhooks' certificate: read from a folder that is given, or issued and renewed by the manager."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from isvc.toolkit.client import Client
from isvc.toolkit.manager import Service
from isvc.toolkit.rotation import Certificates, Targets

log = logging.getLogger(__name__)
ROOT: Final = 0  # mounts volumes
MOUNTED: Final = Path("k8s-webhook-server") / "serving-certs"
"""Below the temporary folder: where KServe's manifests mount the Secret, which controller-runtime reads by default."""


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
