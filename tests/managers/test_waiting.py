"""A cluster that is not ready for a manager is waited for, with one sentence that says what is missing."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest
from tests.cluster.faulty_proxy import FaultyProxy
from tests.ports import free_port
from tests.waiting import until

from isvc.kube.resource import CONFIG_MAPS, LEASES, NAMESPACES, Resource
from isvc.programs.tls import webhook_certificates
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.client.kubeconfig import ClusterConfig, Impersonation
from isvc.toolkit.controller import Controller, Watch
from isvc.toolkit.election import Election
from isvc.toolkit.manager import Manager
from isvc.toolkit.reads import Read
from isvc.toolkit.rotation import Targets
from isvc.toolkit.webhook import WebhookServer

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


@pytest.fixture
async def proxy(cluster):
    async with FaultyProxy(cluster) as running:
        yield running


class Running:
    """A manager with a lease, certificates of its own and a controller, in a namespace that may be missing."""

    def __init__(self, config: ClusterConfig, namespace: str) -> None:
        self.client = client = Client.connect(config)
        folder, certificates = webhook_certificates(
            client, service="hooks", secret="hooks", namespace=namespace, targets=Targets(), cert_dir=None
        )
        controller = Controller("idle", self._idle, [Watch(CONFIG_MAPS)], reads=[Read(CONFIG_MAPS, namespace)])
        self.manager = Manager(
            client,
            Cache(client),
            controllers=[controller],
            election=Election(client, "idle", namespace, retry_seconds=0.1, renew_seconds=5),
            webhooks=WebhookServer(free_port(), folder, {}, host="127.0.0.1"),
            services=certificates,
        )

    async def _idle(self, key: object) -> None:
        return None

    async def __aenter__(self) -> Running:
        self._task = asyncio.create_task(self.manager.run(handle_signals=False))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.manager.stop()
        await asyncio.wait_for(self._task, 30)
        await self.client.close()

    def waits(self) -> bool:
        return not self._task.done() and not self.manager.ready


def sentences(caplog: pytest.LogCaptureFixture, about: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if about in record.getMessage()]


async def test_an_api_server_that_is_not_there_yet(proxy, client, namespace, caplog):
    proxy.away = True
    async with Running(proxy.config, namespace) as running:
        await until(lambda: proxy.requests > 2, "it tries again")
        assert running.waits()
        proxy.away = False
        await until(lambda: running.manager.ready)
    (sentence,) = sentences(caplog, "waiting for the API server")
    assert proxy.config.server in sentence


async def test_a_system_namespace_that_does_not_exist_yet(proxy, client, caplog):
    namespace = f"later-{uuid.uuid4().hex[:8]}"
    async with Running(proxy.config, namespace) as running:
        await until(lambda: len(proxy.writes) > 2, "it tries again")
        assert running.waits()
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await until(lambda: running.manager.ready)
        election = running.manager.election
        assert election is not None
        await until(election.holds)
        assert (await client.get(LEASES, "idle", namespace))["spec"]["holderIdentity"]
    (sentence,) = sentences(caplog, "waiting for the webhook certificate")
    assert f'namespaces "{namespace}" not found' in sentence


async def test_rights_that_are_missing(proxy, client, namespace, caplog):
    user = f"manager-of-{namespace}"
    config = replace(proxy.config, impersonate=Impersonation(user=user))
    async with Running(config, namespace) as running:
        await until(lambda: sentences(caplog, "waiting for the webhook certificate"))
        assert running.waits()
        for resource, rest in (
            (ROLES, {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
            (
                BINDINGS,
                {
                    "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": "manager"},
                    "subjects": [{"apiGroup": ROLES.group, "kind": "User", "name": user}],
                },
            ),
        ):
            metadata = {"name": "manager", "namespace": namespace}
            await client.create(
                resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}
            )
        await until(lambda: running.manager.ready)
    (sentence,) = sentences(caplog, "waiting for the webhook certificate")
    assert f'User "{user}" cannot' in sentence


async def test_a_manager_that_waits_can_be_stopped(proxy, namespace):
    proxy.away = True
    async with Running(proxy.config, namespace) as running:
        await until(lambda: proxy.requests)
        assert running.waits()
