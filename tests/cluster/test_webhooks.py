"""Webhooks and their certificates, asked by a real API server."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.waiting import until

from isvc.kube.errors import ApiError
from isvc.kube.objects import deep_copy
from isvc.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.toolkit.client import Client, PatchKind
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.rotation import Certificates, Targets
from isvc.toolkit.webhook import (
    Admission,
    AdmissionRequest,
    AdmissionResponse,
    Conversion,
    Route,
    WebhookServer,
    allow,
    allow_change,
    deny,
)
from isvc.wire.x509.issue import AUTHORITY_LIFE, SERVING_LIFE, issue_authority, issue_serving

HOSTS = ("hooks.kserve.svc", "localhost", "127.0.0.1")


class ShiftedClock(SystemClock):
    """The real time, some days ahead."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self):
        return super().now() + self.ahead


def mark(request: AdmissionRequest) -> AdmissionResponse:
    after = deep_copy(request.object)
    after.setdefault("data", {})["marked-for"] = request.user["username"]
    return allow_change(request.object, after)


async def judge(request: AdmissionRequest) -> AdmissionResponse:
    data = request.object.get("data") or {}
    if "crash" in data:
        raise ZeroDivisionError("judged by zero")
    if "slow" in data:
        await asyncio.sleep(60)
    if "bad" in data:
        return deny(f"{request.operation} of {request.namespace}/{request.name} refused: bad")
    return allow("fine, but mind the gap") if "odd" in data else allow()


def to_version(objects: list[dict], version: str) -> list[dict]:
    if any(obj.get("spec", {}).get("cursed") for obj in objects):
        raise ValueError("cursed")
    return [{**obj, "apiVersion": version, "spec": {**obj.get("spec", {}), "seen": version}} for obj in objects]


@pytest.fixture
async def server(tmp_path, client, namespace) -> AsyncIterator[WebhookServer]:
    certificates = Certificates(client, namespace=namespace, secret="cert", hosts=HOSTS, cert_dir=tmp_path)
    await certificates.ensure()
    routes: dict[str, Route] = {
        "/mark": Admission(mark),
        "/judge": Admission(judge),
        "/convert": Conversion(to_version),
    }
    running = WebhookServer(0, tmp_path, routes, host="127.0.0.1")
    await running.start()
    running.open()
    yield running
    await running.stop()


def configuration(resource: Resource, name: str, url: str, namespace: str) -> dict:
    webhook = {
        "name": f"{name}.isvc.example",
        "admissionReviewVersions": ["v1", "v1beta1"],
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "clientConfig": {"url": url},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
    }
    metadata = {"name": f"{name}-{namespace}"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "webhooks": [webhook]}


@pytest.fixture
async def registered(server, client, namespace, tmp_path) -> AsyncIterator[None]:
    """Both webhooks registered, with the caBundle injected."""
    base = f"https://127.0.0.1:{server.port}"
    kinds = ((MUTATING_WEBHOOK_CONFIGURATIONS, "mark"), (VALIDATING_WEBHOOK_CONFIGURATIONS, "judge"))
    for resource, name in kinds:
        await client.create(resource, configuration(resource, name, f"{base}/{name}", namespace))
    targets = Targets(mutating=[f"mark-{namespace}"], validating=[f"judge-{namespace}"])
    await Certificates(
        client, namespace=namespace, secret="cert", hosts=HOSTS, cert_dir=tmp_path, targets=targets
    ).ensure()
    yield
    for resource, name in kinds:
        await client.delete(resource, f"{name}-{namespace}")


def config_map(name: str, namespace: str, **data: str) -> dict:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def create_until_asked(client, namespace: str) -> dict:
    """Configurations and their bundles take a moment to reach the API server's handlers, each on its own."""
    attempt = 0

    async def marked_and_judged() -> dict | None:
        nonlocal attempt
        attempt += 1
        with suppress(ApiError):
            created = await client.create(CONFIG_MAPS, config_map(f"probe-{attempt}", namespace))
            try:
                await client.create(CONFIG_MAPS, config_map(f"bad-{attempt}", namespace, bad="1"))
            except ApiError as refused:
                if "marked-for" in created.get("data", {}) and "refused: bad" in refused.message:
                    return created
        return None

    return await until(marked_and_judged)


async def test_admission_through_a_real_api_server(client, namespace, registered):
    await create_until_asked(client, namespace)
    with pytest.raises(ApiError, match=rf"denied the request: CREATE of {namespace}/b refused: bad") as refused:
        await client.create(CONFIG_MAPS, config_map("b", namespace, bad="1"))
    assert refused.value.status_code == 403
    with pytest.raises(ApiError, match="the webhook crashed: ZeroDivisionError: judged by zero") as crashed:
        await client.create(CONFIG_MAPS, config_map("c", namespace, crash="1"))
    assert crashed.value.status_code == 500
    with pytest.raises(ApiError, match=r"did not decide in time|deadline|timed out|timeout") as slow:
        await client.create(CONFIG_MAPS, config_map("s", namespace, slow="1"))
    assert slow.value.status_code in (500, 504)
    assert await client.create(CONFIG_MAPS, config_map("o", namespace, odd="1"))


def wisp_crd(group: str, url: str) -> dict:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    def version(name: str, *, storage: bool) -> dict:
        return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}

    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": url}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"wisps.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "wisps", "singular": "wisp", "kind": "Wisp"},
            "versions": [version("v1", storage=True), version("v2", storage=False)],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


async def test_conversion_through_a_real_api_server(client, namespace, server, tmp_path):
    group = f"{namespace}.example"
    v1, v2 = (Resource(group, version, "wisps", "Wisp") for version in ("v1", "v2"))
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, wisp_crd(group, f"https://127.0.0.1:{server.port}/convert"))
    await Certificates(
        client,
        namespace=namespace,
        secret="cert",
        hosts=HOSTS,
        cert_dir=tmp_path,
        targets=Targets(crds=[f"wisps.{group}"]),
    ).ensure()
    wisp = {"apiVersion": v1.api_version, "kind": "Wisp", "metadata": {"name": "w", "namespace": namespace}, "spec": {}}

    async def created() -> bool:
        with suppress(ApiError):
            await client.create(v1, wisp)
            return True
        return False

    await until(created)

    async def converted() -> dict | None:
        with suppress(ApiError):
            return await client.get(v2, "w", namespace)
        return None

    seen = await until(converted)
    assert (seen["apiVersion"], seen["spec"]["seen"]) == (v2.api_version, v2.api_version)
    await client.patch(v1, "w", {"spec": {"cursed": True}}, namespace)
    with pytest.raises(ApiError, match="conversion failed: cursed"):
        await client.get(v2, "w", namespace)
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"wisps.{group}")


def served_certificate(port: int) -> x509.Certificate:
    return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", port)).encode())


async def test_rotation_needs_no_restart_and_cuts_nobody_off(client, namespace, server, registered, tmp_path):
    clock = ShiftedClock()
    targets = Targets(mutating=[f"mark-{namespace}"], validating=[f"judge-{namespace}"])
    certificates = Certificates(
        client, namespace=namespace, secret="cert", hosts=HOSTS, cert_dir=tmp_path, targets=targets, clock=clock
    )
    await create_until_asked(client, namespace)
    first = await asyncio.to_thread(served_certificate, server.port)
    before = await client.get(SECRETS, "cert", namespace)

    await certificates.ensure()
    assert await client.get(SECRETS, "cert", namespace) == before, "nothing was due"

    clock.ahead = SERVING_LIFE * 0.9  # the serving certificate is due, its authority is not
    await certificates.ensure()
    second = await asyncio.to_thread(served_certificate, server.port)
    assert second.serial_number != first.serial_number
    assert second.issuer == first.issuer
    assert (await client.get(SECRETS, "cert", namespace))["data"]["ca.crt"] == before["data"]["ca.crt"]

    clock.ahead = AUTHORITY_LIFE * 0.9  # now the authority as well: the bundle carries both
    await certificates.ensure()
    bundle = x509.load_pem_x509_certificates((tmp_path / "ca.crt").read_bytes())
    assert len(bundle) == 2
    held = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, f"mark-{namespace}")
    secret = await client.get(SECRETS, "cert", namespace)
    assert held["webhooks"][0]["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]


async def test_replicas_that_start_together_agree_on_one_certificate(client, namespace, tmp_path):
    folders = [tmp_path / str(number) for number in range(4)]
    replicas = [
        Certificates(client, namespace=namespace, secret="shared", hosts=HOSTS, cert_dir=folder) for folder in folders
    ]
    await asyncio.gather(*(each.ensure() for each in replicas))
    assert len({(folder / "tls.crt").read_bytes() for folder in folders}) == 1
    assert all((folder / "tls.key").stat().st_mode & 0o077 == 0 for folder in folders)


def written_by_others() -> dict[str, dict[str, bytes]]:
    now = datetime.now(UTC)
    ours, theirs = issue_authority("ours", now), issue_authority("theirs", now)
    serving, other = issue_serving(ours, HOSTS, now), issue_serving(ours, HOSTS, now)
    sound = {"ca.crt": ours.certificate, "ca.key": ours.key, "tls.crt": serving.certificate, "tls.key": serving.key}
    foreign = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {
        "no authority": {"tls.crt": serving.certificate, "tls.key": serving.key},
        "a key of another kind": sound | {"ca.key": foreign},
        "a key that is none": sound | {"ca.key": b"nonsense", "tls.key": b"nonsense"},
        "a key of another certificate": sound | {"tls.key": other.key},
        "another authority": sound | {"ca.crt": theirs.certificate, "ca.key": theirs.key},
        "nothing readable": dict.fromkeys(sound, b"nonsense"),
    }


@pytest.mark.parametrize("fault", written_by_others())
async def test_a_secret_that_others_wrote_is_put_right(
    client: Client, namespace: str, tmp_path: Path, fault: str
) -> None:
    data = {name: base64.b64encode(value).decode() for name, value in written_by_others()[fault].items()}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert", "namespace": namespace}}
    await client.create(SECRETS, manifest | {"data": data})
    certificates = Certificates(client, namespace=namespace, secret="cert", hosts=HOSTS, cert_dir=tmp_path)
    await certificates.ensure()
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    served = x509.load_pem_x509_certificate((tmp_path / "tls.crt").read_bytes())
    authorities = x509.load_pem_x509_certificates((tmp_path / "ca.crt").read_bytes())
    served.verify_directly_issued_by(authorities[0])
    live = await client.get(SECRETS, "cert", namespace)
    await certificates.ensure()
    assert await client.get(SECRETS, "cert", namespace) == live, "it is right now"


async def test_a_bundle_that_somebody_removed_is_put_back(client, namespace, registered, tmp_path, monkeypatch):
    name = f"judge-{namespace}"
    targets = Targets(validating=[name, "does-not-exist"])
    certificates = Certificates(
        client, namespace=namespace, secret="cert", hosts=HOSTS, cert_dir=Path(tmp_path), targets=targets
    )
    removed = {"webhooks": [{"name": "judge.isvc.example", "clientConfig": {"caBundle": None}}]}
    for _ in range(2):  # before its first look, and between two of them
        await client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, name, removed, kind=PatchKind.STRATEGIC)
        await certificates.ensure()
        live = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, name)
        assert live["webhooks"][0]["clientConfig"]["caBundle"]
    read, get = [], Client.get

    async def get_and_note(self, resource, name, namespace=""):
        read.append(name)
        return await get(self, resource, name, namespace)

    monkeypatch.setattr(Client, "get", get_and_note)
    await certificates.ensure()
    assert read == ["cert", "does-not-exist"], "of what nobody changed the version is enough"
