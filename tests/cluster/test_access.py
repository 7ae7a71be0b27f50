"""Metrics over TLS, for those whom the cluster lets read them."""

from __future__ import annotations

from typing import cast

import aiohttp
import pytest
from tests.manual_clock import ManualClock
from tests.ports import free_port

from isvc.kube.resource import SERVICE_ACCOUNTS, Resource
from isvc.programs.options import TLS
from isvc.programs.tls import protection
from isvc.toolkit.access import ALLOWED_SECONDS, DENIED_SECONDS, TOKEN_SECONDS, Access
from isvc.toolkit.address import Address
from isvc.toolkit.client import Client
from isvc.toolkit.probes import Probes

GROUP = "rbac.authorization.k8s.io"
ROLES = Resource(GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource(GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


@pytest.fixture
async def tokens(client, namespace) -> dict[str, str]:
    """Tokens of two service accounts, of which `reader` may read /metrics."""
    made = {}
    for name in ("reader", "stranger"):
        metadata = {"name": name, "namespace": namespace}
        await client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        path = SERVICE_ACCOUNTS.path(namespace, name, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        made[name] = (await client.request("POST", path, body=body))["status"]["token"]
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    role = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": namespace}, "rules": [rule]}
    await client.create(ROLES, role)
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    await client.create(BINDINGS, binding)
    return made


async def test_metrics_are_served_over_tls_to_whom_may_read_them(client, tokens):
    probes, port = Probes(), free_port()
    await probes.serve(
        Address("127.0.0.1", port), texts={"/metrics": lambda: b"up 1\n"}, protection=protection(client, TLS())
    )
    async with aiohttp.ClientSession() as session:

        async def page(path: str, token: str = "") -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with session.get(f"https://127.0.0.1:{port}{path}", headers=headers, ssl=False) as response:
                return response.status, await response.text()

        try:
            assert await page("/metrics") == (401, "Unauthorized")
            assert await page("/metrics", "nonsense") == (401, "Unauthorized")
            assert await page("/metrics", tokens["reader"]) == (200, "up 1\n")
            status, text = await page("/metrics", tokens["stranger"])
            assert (status, text.startswith("Authorization denied for user system:serviceaccount:")) == (403, True)
            assert (await page("/else", tokens["reader"]))[0] == 403, "it may not even see what is there"
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.get(f"http://127.0.0.1:{port}/metrics")
        finally:
            await probes.stop()


class Reviews:
    """Counts the reviews that an API server is asked for, and answers them."""

    def __init__(self, *, allowed: bool) -> None:
        self.allowed = allowed
        self.asked: list[str] = []

    def without_fence(self) -> Reviews:
        return self

    async def create(self, resource: Resource, obj: dict) -> dict:
        self.asked.append(resource.kind)
        who = {"username": "me", "groups": ["g"], "extra": {"scopes": ["a"]}}
        return {"status": {"authenticated": True, "user": who, "allowed": self.allowed}}


@pytest.mark.parametrize(("allowed", "seconds"), [(True, ALLOWED_SECONDS), (False, DENIED_SECONDS)])
async def test_answers_are_remembered_for_a_while(allowed: bool, seconds: float):
    reviews, clock = Reviews(allowed=allowed), ManualClock()
    access = Access(cast(Client, reviews), clock)

    async def ask() -> list[str]:
        reviews.asked.clear()
        assert (await access.refusal("GET", "/metrics", "Bearer t") is None) == allowed
        return list(reviews.asked)

    assert await ask() == ["TokenReview", "SubjectAccessReview"]
    assert await ask() == []
    assert await access.refusal("GET", "/else", "Bearer t") is None or not allowed
    clock.advance(min(TOKEN_SECONDS, seconds) + 1)
    assert await ask() == (["TokenReview"] if allowed else ["SubjectAccessReview"])
    clock.advance(max(TOKEN_SECONDS, seconds) + 1)
    assert await ask() == ["TokenReview", "SubjectAccessReview"]
