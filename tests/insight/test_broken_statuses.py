"""A status that is none, written past every schema, gets a sentence or nothing, and never a traceback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.definitions import install, ours
from tests.servers import Cluster, start

from isvc.api.kinds import KINDS
from isvc.api.resources import INFERENCE_SERVICES
from isvc.cli import main
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES
from isvc.serving.shipped import laptop_config, shipped_runtimes
from isvc.toolkit.client import Client, kubeconfig

SERVICE: Object = {
    "apiVersion": INFERENCE_SERVICES.api_version,
    "kind": INFERENCE_SERVICES.kind,
    "metadata": {"name": "iris", "namespace": "default"},
    "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}}},
}
BROKEN = (
    {"conditions": "none"},
    {"conditions": [None]},
    {"conditions": {"Ready": True}},
    {"conditions": [{"type": 3, "status": []}]},
    {"url": 7, "address": "x", "components": "x", "modelStatus": [], "observedGeneration": "first"},
    {"components": {"predictor": [1]}, "modelStatus": {"states": "x", "lastFailureInfo": 3}},
)


def without_schema(definition: Object) -> Object:
    """The definition as somebody installs it who wants no checks."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{**each, "schema": {"openAPIV3Schema": anything}} for each in definition["spec"]["versions"]]
    return {**definition, "spec": {**definition["spec"], "versions": versions}}


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = start("embedded", tmp_path_factory.mktemp("loose"))
    try:
        asyncio.run(_fill(running))
        yield running
    finally:
        running.stop()


async def _fill(cluster: Cluster) -> None:
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
        await install(client, *(without_schema(ours(row.resource)) for row in KINDS))
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kserve"}})
        await client.create(CONFIG_MAPS, laptop_config("kserve", "example.com"))
        for runtime in shipped_runtimes():
            row = next(each for each in KINDS if each.resource.kind == runtime["kind"])
            await client.create(row.resource, runtime)
        await client.create(INFERENCE_SERVICES, SERVICE)


@pytest.mark.parametrize("status", BROKEN, ids=str)
async def test_commands_cope_with_it(loose: Cluster, tmp_path: Path, status: Any) -> None:
    async with Client.connect(kubeconfig.load(loose.kubeconfig)) as client:
        live = await client.get(INFERENCE_SERVICES, "iris", "default")
        await client.update(INFERENCE_SERVICES, {**live, "status": status}, subresource="status")
    changed = {**SERVICE, "spec": {"predictor": {**SERVICE["spec"]["predictor"], "minReplicas": 3}}}
    (tmp_path / "change.yaml").write_text(yaml.safe_dump(changed))

    async def isvc(*words: str) -> Result:
        command = [*words, "--kubeconfig", str(loose.kubeconfig)]
        return await asyncio.to_thread(CliRunner().invoke, main, command)

    for words in (
        ("diff", "-f", str(tmp_path / "change.yaml")),
        ("preflight",),
        ("preflight", "--takeover"),
        ("get",),
        ("explain", "iris"),
        ("effective", "iris"),
    ):
        done = await isvc(*words)
        assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
        assert "Traceback" not in done.output
    different = await isvc("diff", "-f", str(tmp_path / "change.yaml"))
    said = "iris-predictor" if different.exit_code == 1 else "status.conditions"  # what changes, or what is in the way
    assert said in different.output
