"""The dashboard on an API server with RBAC: what an administrator sees, and what users' tokens let them see."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from tests.burial import bury
from tests.cluster.lifecycles.stage import Platform, running, service, set_up
from tests.ports import free_port
from tests.servers import Cluster
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.cli.dashboard import Wanted, start
from isvc.dashboard.cluster import scoped_views, user_views
from isvc.dashboard.pages import live
from isvc.kube.objects import dig
from isvc.kube.resource import NAMESPACES, SERVICE_ACCOUNTS, Resource
from isvc.toolkit.client import Client

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role", namespaced=True)
BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding", namespaced=True)
VIEWER = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "Role",
    "rules": [
        {"apiGroups": ["serving.kserve.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["", "apps"], "resources": ["pods", "deployments", "events"], "verbs": ["get", "list", "watch"]},
    ],
}


class Team:
    """A namespace with a service and with a user who may look at it, and at nothing else."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.path = f"/services/isvc/{namespace}/life"
        self.token = ""

    async def move_in(self) -> None:
        metadata = {"name": "viewer", "namespace": self.namespace}
        await self.client.create(NAMESPACES, _named("v1", "Namespace", {"name": self.namespace}))
        await self.client.create(SERVICE_ACCOUNTS, _named("v1", "ServiceAccount", metadata))
        await self.client.create(ROLES, {**VIEWER, "metadata": metadata})
        subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": self.namespace}
        role = {"apiGroup": RBAC, "kind": "Role", "name": "viewer"}
        binding = _named(f"{RBAC}/v1", "RoleBinding", metadata)
        await self.client.create(BINDINGS, {**binding, "roleRef": role, "subjects": [subject]})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = SERVICE_ACCOUNTS.path(self.namespace, "viewer", "token")
        self.token = (await self.client.request("POST", path, body=request))["status"]["token"]
        await self.client.create(INFERENCE_SERVICES, service(self.namespace))

    async def is_ready(self) -> bool:
        await Platform(self.client).make_ready(self.namespace)
        found = await self.client.get(INFERENCE_SERVICES, "life", self.namespace)
        conditions = {each["type"]: each["status"] for each in dig(found, "status", "conditions") or ()}
        return conditions.get("Ready") == "True"


def _named(api_version: str, kind: str, metadata: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


@pytest.fixture
async def teams(client) -> AsyncIterator[tuple[Team, Team]]:
    """Two of them, whose services are ready."""
    system, *names = (f"{part}-{uuid.uuid4().hex[:8]}" for part in ("system", "red", "blue"))
    await client.create(NAMESPACES, _named("v1", "Namespace", {"name": system}))
    await set_up(client, system, "Standard")
    red, blue = (Team(client, name) for name in names)
    async with running(client, system):
        try:
            for team in (red, blue):
                await team.move_in()
            for team in (red, blue):
                await until(team.is_ready, "a service becomes ready", every=0.2)
            yield red, blue
        finally:
            await bury(client, *names)


class Visitor:
    """Somebody who sends a bearer token to a dashboard."""

    def __init__(self, session: aiohttp.ClientSession, base: str, token: str) -> None:
        self.session, self.base = session, base
        self.headers = {"Authorization": f"Bearer {token}"}

    async def json(self, path: str, status: int = 200) -> dict[str, Any]:
        async with self.session.get(self.base + path, headers={**self.headers, "Accept": "application/json"}) as answer:
            assert answer.status == status, await answer.text()
            return json.loads(await answer.read())

    async def has(self, path: str, text: str) -> bool:
        async with self.session.get(self.base + path, headers=self.headers) as answer:
            return text in await answer.text()

    async def send(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {**self.headers, "Accept": "application/json"}
        async with self.session.post(self.base + path, data={"request": json.dumps(body)}, headers=headers) as answer:
            found: dict[str, Any] = json.loads(await answer.read())["answer"]
            return found

    async def services(self, path: str = "/") -> set[str]:
        """The namespaces of the services on the overview that are ours, all of them ready."""
        rows = (await self.json(path))["rows"]
        return {row["place"]["namespace"] for row in rows if row["place"]["name"] == "life" and row["state"] == "ready"}


@asynccontextmanager
async def program(kubeconfig: Path) -> AsyncIterator[tuple[str, str]]:
    """`isvc dashboard` as people run it: its address and the token of its link."""
    command = [sys.executable, "-u", "-c", "from isvc.cli import main; main()", "dashboard", "--port", "0"]
    process = await asyncio.create_subprocess_exec(
        *command, "--kubeconfig", str(kubeconfig), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        said = (await process.stdout.readline()).decode()
        base, _, token = said.split()[-1].partition("/?token=")
        yield base, token
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def with_user_tokens(client: Client) -> AsyncIterator[str]:
    dashboard = await start(client, Wanted(port=0, user_tokens=True))
    try:
        yield dashboard.link.rstrip("/")
    finally:
        await dashboard.close()


def kubeconfig_of(cluster: Cluster, team: Team, folder: Path) -> Path:
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": team.token}
    path = folder / "viewer.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


async def test_who_may_read_one_namespace_needs_no_flag(cluster, teams, tmp_path):
    red, blue = teams
    async with aiohttp.ClientSession() as session:
        async with program(cluster.kubeconfig) as (base, token):
            admin = Visitor(session, base, token)
            assert await admin.services() >= {red.namespace, blue.namespace}
            assert (await admin.json(red.path))["findings"] == []
        async with program(kubeconfig_of(cluster, red, tmp_path)) as (base, token):
            viewer = Visitor(session, base, token)
            assert await viewer.services() == {red.namespace}
            page = await viewer.json(red.path)
            assert [node["name"] for node in page["tree"]] == ["predictor"], "it may not read Ingresses"
            await viewer.json(blue.path, status=404)


async def test_users_see_what_rbac_lets_them_see(client, teams):
    red, blue = teams
    async with with_user_tokens(client) as base, aiohttp.ClientSession() as session:
        visitors = [Visitor(session, base, team.token) for team in teams]
        assert await asyncio.gather(*(each.services() for each in visitors)) == [{red.namespace}, {blue.namespace}]
        assert await visitors[0].services(f"/?namespace={blue.namespace}") == set()
        await visitors[0].json(blue.path, status=404)
        await visitors[0].json(f"/objects/Deployment.v1.apps/{blue.namespace}/life-predictor", status=403)


async def test_a_namespace_that_one_may_read_can_be_named(client, teams):
    """A service account that may read another namespace, and may not list any, has to say which."""
    red, blue = teams
    subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": red.namespace}
    binding = _named(f"{RBAC}/v1", "RoleBinding", {"name": "guest", "namespace": blue.namespace})
    role = {"apiGroup": RBAC, "kind": "Role", "name": "viewer"}
    await client.create(BINDINGS, {**binding, "roleRef": role, "subjects": [subject]})
    async with with_user_tokens(client) as base, aiohttp.ClientSession() as session:
        guest = Visitor(session, base, red.token)
        assert await guest.services() == {red.namespace}
        assert await until(lambda: guest.services(f"/?namespace={blue.namespace}")) == {blue.namespace}
        assert (await guest.json(blue.path))["service"]["state"] == "ready"


async def test_a_view_that_is_opened_when_all_others_are_in_use_stays(client, monkeypatch):
    monkeypatch.setattr(scoped_views, "MOST_NAMED", 1)
    views = scoped_views.ScopedViews(client)
    try:
        async with views.view_of("default"), views.view_of("kube-system"):
            assert list(views.named) == ["default", "kube-system"]
        async with views.view_of("kube-public"):
            assert list(views.named) == ["kube-public"]
    finally:
        await views.close()


@asynccontextmanager
async def trap() -> AsyncIterator[tuple[str, list[str]]]:
    """The URL of a server that nobody should ask, and who asked."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_who_writes_a_status_does_not_choose_where_requests_of_others_go(client, teams):
    """With users' tokens they go through the API server, which asks whether the user may."""
    red, _ = teams
    held = service(red.namespace)
    held["metadata"] |= {"name": "held", "finalizers": ["example.com/held"]}
    await client.create(INFERENCE_SERVICES, held)
    await client.delete(INFERENCE_SERVICES, "held", red.namespace)

    async def is_left_alone() -> bool:  # by the controller, which writes no status of what is being deleted
        found = await client.get(INFERENCE_SERVICES, "held", red.namespace)
        return bool(found["metadata"]["finalizers"] == ["example.com/held"])

    async with with_user_tokens(client) as base, aiohttp.ClientSession() as session, trap() as (url, asked):
        try:
            await until(is_left_alone)
            await client.patch(
                INFERENCE_SERVICES, "held", {"status": {"url": url}}, red.namespace, subresource="status"
            )
            visitor = Visitor(session, base, red.token)
            path = f"/services/isvc/{red.namespace}/held"
            await until(lambda: visitor.has(path, url), "the dashboard sees the address")
            answer = await visitor.send(f"{path}/try", {"instances": [[1]]})
            assert answer["failed"]
            assert "held-predictor" in answer["text"]
            assert "is forbidden" in answer["text"]
            assert asked == []
        finally:
            left = {"metadata": {"finalizers": None}}
            await client.patch(INFERENCE_SERVICES, "held", left, red.namespace)


async def test_a_token_that_ends_ends_what_is_open(client, teams, monkeypatch):
    monkeypatch.setattr(user_views, "RECHECK", 0.2)
    monkeypatch.setattr(live, "BEAT", 0.2)
    red, _ = teams
    async with with_user_tokens(client) as base, aiohttp.ClientSession() as session:
        viewer = Visitor(session, base, red.token)
        async with session.get(f"{base}{red.path}/live", headers=viewer.headers) as events:
            assert b"event: page" in await events.content.readline()
            await client.delete(SERVICE_ACCOUNTS, "viewer", red.namespace)
            await asyncio.wait_for(events.read(), 60)
        await viewer.json("/", status=401)


class Wire:
    """A way to the API server that can be cut, with all connections on it, and mended again."""

    def __init__(self, cluster: Cluster) -> None:
        self.host, self.port = cluster.url.partition("://")[2].rstrip("/").rsplit(":", 1)
        self.own_port = free_port()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.own_port)

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.host, int(self.port))
        self._writers += [writer, far_writer]
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_pages_say_that_the_cluster_does_not_answer_and_go_on_when_it_does(cluster, client, teams):
    red, _ = teams
    wire = Wire(cluster)
    await wire.mend()
    config = replace(client.config, server=f"https://127.0.0.1:{wire.own_port}", insecure=True, ca=b"")
    async with Client.connect(config) as through, aiohttp.ClientSession() as session:
        dashboard = await start(through, Wanted(port=0))
        base, _, token = dashboard.link.partition("/?token=")
        reader = Visitor(session, base, token)
        try:
            await reader.services()
            async with session.get(f"{base}/live?namespace={red.namespace}", headers=reader.headers) as events:
                await wire.cut()
                assert await _comes(events, b"what is shown may be old")
                assert red.namespace in await reader.services(), "what was known is shown"
                await wire.mend()
                assert await _comes(events, b'role="status" hx-swap-oob="true" hidden')
                await client.delete(INFERENCE_SERVICES, "life", red.namespace)
                assert await _comes(events, b"services matches")
        finally:
            await dashboard.close()
            await wire.cut()


async def _comes(events: aiohttp.ClientResponse, text: bytes) -> bool:
    async with asyncio.timeout(120):
        async for line in events.content:
            if text in line:
                return True
    return False
