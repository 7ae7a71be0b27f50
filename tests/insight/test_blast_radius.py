"""Whom a change of what services share concerns: `isvc diff` names exactly those that the controllers then update.

Both managers' controllers run on an API server of their own, since a configuration is everybody's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.cluster.programs import SYSTEM, controllers
from tests.insight.failures.manifests import CONFIG, HERE
from tests.insight.failures.world import World
from tests.servers import Cluster, discard, start
from tests.waiting import until

from isvc.api.resources import (
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
)
from isvc.cli import main
from isvc.insight.rendering.differences import content
from isvc.insight.rendering.shipped import shipped_objects
from isvc.kube.objects import Object, name_of, uid_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SERVICES, Resource
from isvc.programs import isvc_manager, llmisvc_manager
from isvc.serving.thirdparty import HTTP_ROUTES
from isvc.toolkit.client import Client, kubeconfig

CHILDREN = (DEPLOYMENTS, SERVICES, HTTP_ROUTES)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = start(request.config.getoption("--cluster"), Path(tmp_path_factory.mktemp("radius")))
    yield running
    discard(running)


def made(resource: Resource, name: str, namespace: str = "", **content: Object) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def storage(image: str) -> Object:
    limits = {"cpu": "1", "memory": "1Gi"}
    initializer = {"name": "storage-initializer", "image": image, "resources": {"limits": limits, "requests": limits}}
    spec = {"container": initializer, "supportedUriFormats": [{"prefix": "s3://"}], "workloadType": "initContainer"}
    return made(CLUSTER_STORAGE_CONTAINERS, "bucket", spec=spec)


def preset(name: str, image: str) -> Object:
    spec = {"template": {"containers": [{"name": "main", "image": image}]}}
    return made(LLM_INFERENCE_SERVICE_CONFIGS, name, HERE, spec=spec)


def llm(name: str, base: str, uri: str) -> Object:
    return made(
        LLM_INFERENCE_SERVICES, name, HERE, spec={"model": {"uri": uri, "name": "m"}, "baseRefs": [{"name": base}]}
    )


def domain(name: str) -> Object:
    sections = {**CONFIG, "ingress": {**CONFIG["ingress"], "ingressDomain": name}}
    data = {section: json.dumps(value) for section, value in sections.items()}
    return made(CONFIG_MAPS, "inferenceservice-config", SYSTEM, data=data)


class Change(NamedTuple):
    """Services whose children it changes, those whose pods restart, and those whose pods will be made differently."""

    resource: Resource
    document: Object
    changed: set[str]
    restarted: set[str]
    later: set[str]


CHANGES = [
    Change(CONFIG_MAPS, domain("elsewhere.org"), {"open"}, set(), set()),
    Change(CLUSTER_STORAGE_CONTAINERS, storage("initializer:2"), set(), set(), {"open", "hidden"}),
    Change(
        LLM_INFERENCE_SERVICE_CONFIGS,
        preset("fast", "server:2"),
        {"fast-bucket", "fast-claim"},
        {"fast-bucket", "fast-claim"},
        set(),
    ),
]


async def seed(client: Client, world: World) -> None:
    await client.create(CLUSTER_STORAGE_CONTAINERS, storage("initializer:1"))
    for each in (*shipped_objects(SYSTEM), preset("fast", "server:1"), preset("slow", "server:1")):
        if each["kind"] == LLM_INFERENCE_SERVICE_CONFIGS.kind:
            await client.create(LLM_INFERENCE_SERVICE_CONFIGS, each)
    await world.service("open")
    await world.service("hidden", labels={"networking.kserve.io/visibility": "cluster-local"})
    for each in (
        llm("fast-bucket", "fast", "s3://models/a"),
        llm("fast-claim", "fast", "pvc://claim/a"),
        llm("slow-claim", "slow", "pvc://claim/a"),
    ):
        await client.create(LLM_INFERENCE_SERVICES, each)
    for name in ("open", "hidden"):
        await world.available(name)
    await world.routes("open", "Accepted", "True")


async def children(client: Client) -> dict[str, str]:
    """What each service's children say, their status aside."""
    owners = [each for kind in (INFERENCE_SERVICES, LLM_INFERENCE_SERVICES) for each in (await client.list(kind)).items]
    names = {uid_of(each): name_of(each) for each in owners}
    found: dict[str, list[str]] = {name: [] for name in names.values()}
    for kind in CHILDREN:
        for each in (await client.list(kind, HERE)).items:
            if owner := names.get(str((controller_of(each) or {}).get("uid"))):
                found[owner].append(json.dumps(content(each), sort_keys=True))
    return {name: "\n".join(sorted(texts)) for name, texts in found.items()}


async def diff(server: Cluster, folder: Path, document: Object) -> Result:
    path = folder / "change.yaml"
    path.write_text(yaml.safe_dump(document))
    words = ["diff", "-f", str(path), "--kubeconfig", str(server.kubeconfig), "-n", HERE, "-o", "json"]
    return await asyncio.to_thread(CliRunner().invoke, main, words)


async def test_diff_names_whom_a_change_concerns(server: Cluster, tmp_path: Path) -> None:
    async with Client.connect(kubeconfig.load(server.kubeconfig)) as client:
        world = World(client)
        await world.set_up()
        async with controllers(client, isvc_manager.PROGRAM), controllers(client, llmisvc_manager.PROGRAM):
            await seed(client, world)
            for change in CHANGES:
                await check(client, server, tmp_path, change)


async def check(client: Client, server: Cluster, folder: Path, change: Change) -> None:
    before = await quiet(client)
    announced = await diff(server, folder, change.document)
    assert announced.exit_code == 1, f"{change.resource.kind}: {announced.output}"
    services = {each["name"]: each for each in json.loads(announced.stdout)}
    verbs = {name: {child["change"] for child in each["children"]} for name, each in services.items()}
    assert {name for name in verbs if verbs[name] - {"when replaced"}} == change.changed, announced.stdout
    assert {name for name in verbs if "when replaced" in verbs[name]} == change.later
    assert {name for name, each in services.items() if each["podsToRestart"]} == change.restarted
    await apply(client, change.resource, change.document)
    await until(partial(differ, client, before, change.changed), f"{change.resource.kind} is followed", within=120)
    after = await diff(server, folder, change.document)
    assert (after.exit_code, after.stdout) == (0, "[]\n"), after.output


async def apply(client: Client, resource: Resource, document: Object) -> None:
    change = {key: document[key] for key in ("data", "spec") if key in document}
    await client.patch(resource, name_of(document), change, document["metadata"].get("namespace", ""))


async def differ(client: Client, before: dict[str, str], concerned: set[str]) -> bool:
    """Whether these services' children have changed, and no others'."""
    return {name for name, text in (await children(client)).items() if text != before[name]} == concerned


async def quiet(client: Client) -> dict[str, str]:
    """The children once all services have some and none changes any more."""
    last: list[dict[str, str]] = [{}]

    async def unchanged() -> bool:
        last.append(await children(client))
        return all(last[-1].values()) and len(last) > 3 and last[-1] == last[-2] == last[-3]

    await until(unchanged, "the controllers have done what there is to do", within=120, every=0.3)
    return last[-1]
