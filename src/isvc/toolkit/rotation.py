"""Webhook certificates without cert-manager: kept in a Secret, renewed in time, and known to the API server.

All replicas share the Secret; the one that finds it missing or due writes it, and one that lost the race takes what the
other wrote. A new authority joins the bundle beside the old one, also when the Secret was lost, and API servers
learn of it before anybody serves with it: no admission fails while replicas and API servers catch up.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isvc.kube.errors import ApiError, Conflict, Invalid, NotFound
from isvc.kube.objects import Object, dig, resource_version_of
from isvc.kube.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.toolkit.client import Client, PatchKind
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.tasks import cancel
from isvc.toolkit.waiting import retry
from isvc.wire.private_files import write_private
from isvc.wire.x509.check import drop_expired, is_due, is_issued_by, is_pair
from isvc.wire.x509.issue import Pair, issue_authority, issue_serving

log = logging.getLogger(__name__)

CHECK_SECONDS = 60.0
ANNOUNCE_SECONDS = 5.0  # API servers read webhook configurations through a watch
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Targets:
    """The objects whose caBundle is ours to set, by name; with a `service`, only where they name that Service."""

    mutating: Sequence[str] = ()
    validating: Sequence[str] = ()
    crds: Sequence[str] = ()
    service: str = ""


class Certificates:
    """Keeps `cert_dir` and the caBundles of `targets` in step with a Secret. A Service of the manager."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        secret: str,
        hosts: Sequence[str],
        cert_dir: str | Path,
        targets: Targets | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client.without_fence()
        self._namespace, self._secret = namespace, secret
        self._hosts = tuple(hosts)
        self._dir = Path(cert_dir)
        self._targets = targets or Targets()
        self._clock = clock or SystemClock()
        self._right: dict[tuple[Resource, str], tuple[str, str]] = {}  # the version, and the caBundle that it has
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await retry(f"the webhook certificate in the secret {self._namespace}/{self._secret}", self.ensure, self._clock)
        self._task = asyncio.create_task(self._keep(), name="certificates")

    async def stop(self) -> None:
        await cancel(self._task)

    async def ensure(self) -> None:
        """Makes the Secret, the files and the caBundles right, once."""
        data = await self._current()
        await self._inject(data["ca.crt"])
        if self._served_bundle() and not data["ca.crt"].startswith(_first(self._served_bundle())):
            await self._clock.sleep(ANNOUNCE_SECONDS)
        self._write(data)

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            try:
                await self.ensure()
            except Exception as error:  # whatever it was, the next check may find it mended
                log.warning("webhook certificates not checked: %s", error)

    async def _current(self) -> dict[str, bytes]:
        """Returns what the Secret holds, after making or renewing it if that is due."""
        for _ in range(ATTEMPTS):
            live = await self._client.find(SECRETS, self._secret, self._namespace)
            held = {name: base64.b64decode(value) for name, value in ((live or {}).get("data") or {}).items()}
            data = self._renew(held)
            if data == held:
                return held
            try:
                await self._store(live, data)
            except Conflict:
                continue  # another replica was faster
            log.info("issued a webhook certificate, kept in the secret %s/%s", self._namespace, self._secret)
            return data
        raise ClusterError(f"the secret {self._namespace}/{self._secret} keeps changing")

    def _renew(self, held: dict[str, bytes]) -> dict[str, bytes]:
        now = self._clock.now()
        bundle = held.get("ca.crt", b"")
        authority = Pair(bundle, held.get("ca.key", b""))
        serving = Pair(held.get("tls.crt", b""), held.get("tls.key", b""))
        if is_due(bundle, now) or not is_pair(authority):
            authority = issue_authority(f"{self._secret}-ca", now)
            bundle = authority.certificate + (drop_expired(bundle, now) or drop_expired(self._served_bundle(), now))
        elif (
            not is_due(serving.certificate, now, self._hosts)
            and is_pair(serving)
            and is_issued_by(serving.certificate, bundle)
        ):
            return held
        serving = issue_serving(authority, self._hosts, now)
        return {"ca.crt": bundle, "ca.key": authority.key, "tls.crt": serving.certificate, "tls.key": serving.key}

    async def _store(self, live: Object | None, data: dict[str, bytes]) -> None:
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if live is not None:
            await self._client.update(SECRETS, live | {"data": encoded})
            return
        metadata = {"name": self._secret, "namespace": self._namespace}
        await self._client.create(SECRETS, SECRETS.manifest(metadata, type="Opaque", data=encoded))

    def _served_bundle(self) -> bytes:
        """Returns the authorities of the certificate that this replica serves with now; empty before it has one."""
        path = self._dir / "ca.crt"
        return path.read_bytes() if path.exists() else b""

    def _write(self, data: dict[str, bytes]) -> None:
        self._dir.mkdir(parents=True, exist_ok=True)
        for name in ("tls.key", "tls.crt", "ca.crt"):
            path = self._dir / name
            if path.exists() and path.read_bytes() == data[name]:
                continue
            write_private(path, data[name])

    async def _inject(self, bundle: bytes) -> None:
        encoded = base64.b64encode(bundle).decode()
        for resource, names in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, self._targets.mutating),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, self._targets.validating),
            (CUSTOM_RESOURCE_DEFINITIONS, self._targets.crds),
        ):
            for name in names:
                await self._inject_one(resource, name, encoded)

    async def _inject_one(self, resource: Resource, name: str, bundle: str) -> None:
        problem: ApiError | None = None
        for _ in range(ATTEMPTS):
            try:
                known = self._right.get((resource, name))
                if known and known == (await self._client.version(resource, name), bundle):
                    return  # a CRD is a megabyte, and asked for every minute
                live = await self._client.get(resource, name)
                if patch := bundle_patch(live, bundle, self._targets.service):
                    live = await self._client.patch(resource, name, patch, kind=PatchKind.JSON)
                    log.info("%s %s: caBundle set", resource.kind, name)
                self._right[resource, name] = (resource_version_of(live), bundle)
                return
            except NotFound:
                log.debug("%s %s does not exist; no caBundle to set", resource.kind, name)
                return
            except (Conflict, Invalid) as error:  # it changed meanwhile: look again
                problem = error
        log.warning("%s %s: caBundle not set: %s", resource.kind, name, problem)


def _first(bundle: bytes) -> bytes:
    """Returns the first certificate of a bundle: the authority that signs."""
    end = b"-----END CERTIFICATE-----"
    return bundle[: bundle.find(end) + len(end)]


def bundle_patch(live: Object, bundle: str, service: str = "") -> list[Object]:
    """Returns a JSON patch that sets every caBundle that differs; it fails if the object has changed meanwhile.

    Webhooks of another Service than `service`, if one is given, are left alone.
    """
    if live["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind:
        config = (((live["spec"].get("conversion") or {}).get("webhook")) or {}).get("clientConfig")
        places = [("/spec/conversion/webhook/clientConfig", config)] if config is not None else []
    else:
        webhooks = enumerate(live.get("webhooks") or ())
        places = [(f"/webhooks/{number}/clientConfig", webhook["clientConfig"]) for number, webhook in webhooks]
    changes = [
        {"op": "add", "path": f"{path}/caBundle", "value": bundle}
        for path, config in places
        if config.get("caBundle") != bundle and (not service or dig(config, "service", "name") in (None, service))
    ]
    version = live["metadata"]["resourceVersion"]
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, *changes] if changes else []
