"""Of 300 services `isvc diff` names exactly those that a change of their runtime then restarts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.cluster.lifecycles.stage import running, set_up
from tests.insight.test_diff import diff, make_ready, runtime, service, settled
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES, SERVING_RUNTIMES
from isvc.kube.objects import Key, labels_of
from isvc.kube.resource import DEPLOYMENTS
from isvc.toolkit.client import Client, kubeconfig

SERVICES = 300


async def generations(client: Client, namespace: str) -> dict[str, int]:
    found = (await client.list(DEPLOYMENTS, namespace)).items
    return {labels_of(each)["serving.kserve.io/inferenceservice"]: each["metadata"]["generation"] for each in found}


async def test_names_whom_a_runtime_changes(cluster, client, namespace, tmp_path: Path) -> None:
    await set_up(client, namespace, "Standard")
    for each in (runtime("one", "server:1"), runtime("two", "server:1")):
        await client.create(SERVING_RUNTIMES, each, namespace)
    await asyncio.gather(*(client.create(INFERENCE_SERVICES, service(number), namespace) for number in range(SERVICES)))
    keys = {Key(namespace, f"s-{number:03d}") for number in range(SERVICES)}
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace) as state:
        await settled(state, keys)
        await make_ready(client, namespace)
        await settled(state, keys)
        before = await generations(client, namespace)

        same = await diff(cluster, namespace, tmp_path, runtime("one", "server:1"))
        assert (same.exit_code, same.stdout) == (0, "nothing would change\n")

        changed = runtime("one", "server:2")
        result = await diff(cluster, namespace, tmp_path, changed, arguments=("-o", "json"))
        assert result.exit_code == 1, result.output
        announced = {each["name"]: each["podsToRestart"] for each in json.loads(result.stdout)}
        assert await generations(client, namespace) == before, "a diff writes nothing"

        await client.patch(SERVING_RUNTIMES, "one", {"spec": changed["spec"]}, namespace)
        await until(lambda: _changed(client, namespace, before, len(announced)), "the controller follows", within=60)
        await settled(state, keys)
        after = await generations(client, namespace)
        assert announced.keys() == {name for name in after if after[name] != before[name]}
        assert 100 < len(announced) < SERVICES
        assert set(announced.values()) == {1}


async def _changed(client: Client, namespace: str, before: dict[str, int], count: int) -> bool:
    after = await generations(client, namespace)
    return sum(after[name] != before[name] for name in after) >= count
