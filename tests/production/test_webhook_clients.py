"""A real kube-apiserver that shows webhooks a certificate, as docs/security.md tells it to, and one that shows none."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.servers import discard, start

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, VALIDATING_WEBHOOK_CONFIGURATIONS
from isvc.programs.tls import trust_clients
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.webhook import Admission, AdmissionRequest, AdmissionResponse, ClientNames, WebhookServer, allow
from isvc.wire.x509.issue import issue_authority, issue_client, issue_serving

NAME = "kube-apiserver-webhooks"


@asynccontextmanager
async def webhook(folder: Path, admitted: list[AdmissionRequest]) -> AsyncIterator[Object]:
    """A webhook for ConfigMaps that wants to see a certificate; yields its configuration."""
    now = SystemClock().now()
    authority = issue_authority("webhooks", now)
    pair = issue_serving(authority, ["127.0.0.1"], now)
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)

    def admit(request: AdmissionRequest) -> AdmissionResponse:
        admitted.append(request)
        return allow()

    server = WebhookServer(0, folder, {"/": Admission(admit)}, host="127.0.0.1", clients=ClientNames((NAME,)))
    trust_clients(server.tls, folder / "clients.crt")
    await server.start()
    server.open()
    bundle = base64.b64encode(authority.certificate).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    entry = {
        "name": "asked.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{server.port}/", "caBundle": bundle},
        "rules": [rule],
        "objectSelector": {"matchLabels": {"asked": "yes"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    try:
        yield VALIDATING_WEBHOOK_CONFIGURATIONS.typed({"metadata": {"name": "asked"}, "webhooks": [entry]})
    finally:
        await server.stop()


def admission_configuration(folder: Path) -> Path:
    """Writes what kube-apiserver has to be given, as the documentation has it."""
    now = SystemClock().now()
    authority = issue_authority("clients", now)
    (folder / "clients.crt").write_bytes(authority.certificate)
    pair = issue_client(authority, NAME, [], now, timedelta(days=1))
    user = {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    kubeconfig_file = folder / "webhook-clients.json"
    kubeconfig_file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]})
    )
    version = "apiserver.config.k8s.io/v1"
    configuration = {
        "apiVersion": version,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(kubeconfig_file),
    }
    plugins = [
        {"name": f"{each}AdmissionWebhook", "configuration": configuration} for each in ("Mutating", "Validating")
    ]
    written = folder / "admission.json"
    written.write_text(json.dumps({"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": plugins}))
    return written


@pytest.mark.parametrize("shows", [True, False], ids=["with a certificate", "without one"])
async def test_kube_apiserver_is_admitted_by_its_certificate(tmp_path: Path, shows: bool) -> None:
    configuration = admission_configuration(tmp_path)
    (tmp_path / "cluster").mkdir()
    flags = (f"--admission-control-config-file={configuration}",) if shows else ()
    cluster = start("kube-apiserver", tmp_path / "cluster", *flags)
    admitted: list[AdmissionRequest] = []
    try:
        config = kubeconfig.load(cluster.kubeconfig)
        async with Client.connect(config) as client, webhook(tmp_path, admitted) as registered:
            await client.create(NAMESPACES, NAMESPACES.typed({"metadata": {"name": "asked"}}))
            await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, registered)
            refusal = await ask(client, admitted)
    finally:
        discard(cluster)
    assert (bool(admitted), bool(refusal)) == (shows, not shows), refusal
    assert shows or "answers API servers alone" in refusal


async def ask(client: Client, admitted: list[AdmissionRequest]) -> str:
    """Creates ConfigMaps until the API server has noticed the webhook; returns what it is refused with, if it is."""
    for number in itertools.count():
        metadata = {"name": f"asked-{number}", "namespace": "asked", "labels": {"asked": "yes"}}
        try:
            await client.create(CONFIG_MAPS, CONFIG_MAPS.typed({"metadata": metadata}))
        except ApiError as error:
            return str(error)
        if admitted:
            break
    return ""
