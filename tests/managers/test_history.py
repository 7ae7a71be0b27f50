"""Earlier specs are kept and can be brought back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from click.testing import CliRunner, Result
from tests import definitions
from tests.cluster.lifecycles.stage import our_crds, running
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.cli import main
from isvc.controllers.revisions import controller
from isvc.kube.objects import Object
from isvc.kube.resource import CONTROLLER_REVISIONS
from isvc.serving.environment import Environment
from isvc.serving.revisions import revisions_of
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller

LIMIT = 3


def service(uri: str) -> Object:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "iris"},
        "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": uri}}},
    }


async def isvc(cluster, namespace: str, *arguments: str) -> Result:
    command = [*arguments, "--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


def _built(context: Context, environment: Environment) -> Controller:
    return controller(INFERENCE_SERVICES, context, replace(environment, revision_limit=LIMIT))


async def test_history_and_undo(cluster, client, namespace) -> None:
    await definitions.install(client, *our_crds())

    async def uris() -> list[str]:
        found = (await client.list(CONTROLLER_REVISIONS, namespace)).items
        ordered = sorted(found, key=lambda each: each["revision"])
        return [each["data"]["spec"]["predictor"]["model"]["storageUri"] for each in ordered]

    def kept(*expected: str) -> Callable[[], Awaitable[bool]]:
        async def are_kept() -> bool:
            return await uris() == list(expected)

        return are_kept

    async def change(uri: str) -> None:
        patch = {"spec": {"predictor": {"model": {"storageUri": uri}}}}
        await client.patch(INFERENCE_SERVICES, "iris", patch, namespace)

    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace, _built):
        await client.create(INFERENCE_SERVICES, service("gs://a"), namespace)
        await client.patch(INFERENCE_SERVICES, "iris", {"metadata": {"labels": {"a": "b"}}}, namespace)
        none = await isvc(cluster, namespace, "undo", "iris")
        assert (none.exit_code, none.stderr) == (
            1,
            "Error: iris has no earlier spec: it has not changed since its history is kept\n",
        )
        await change("gs://b")
        await until(kept("gs://a"), "the first change is kept")
        await change("gs://c")
        await until(kept("gs://a", "gs://b"), "the second change is kept")

        listed = await isvc(cluster, namespace, "history", "iris")
        assert [line.split()[0] for line in listed.stdout.splitlines()] == ["REVISION", "1", "2", "3"]
        assert "spec.predictor.model.storageUri" in listed.stdout

        shown = await isvc(cluster, namespace, "undo", "iris", "--dry-run")
        assert "-      storageUri: gs://c\n+      storageUri: gs://b\n" in shown.stdout
        undone = await isvc(cluster, namespace, "undo", "iris")
        assert undone.stdout.endswith("InferenceService iris is back at revision 2\n")
        live = await client.get(INFERENCE_SERVICES, "iris", namespace)
        assert live["spec"]["predictor"]["model"]["storageUri"] == "gs://b"
        await until(kept("gs://a", "gs://b", "gs://c"), "what was undone is kept")

        again = await isvc(cluster, namespace, "undo", "iris")  # a second undo undoes the first
        assert "revision 3" in again.stdout
        await until(kept("gs://a", "gs://c", "gs://b"), "the spec that came back is newer now")
        await isvc(cluster, namespace, "undo", "iris", "--to-revision", "1")
        await until(kept("gs://a", "gs://b", "gs://c"), "no more than three")
        await change("gs://d")
        await until(kept("gs://b", "gs://c", "gs://a"), "the same spec is kept once")
        await change("gs://e")
        await until(kept("gs://c", "gs://a", "gs://d"), "the oldest one goes")
        wrong = await isvc(cluster, namespace, "undo", "iris", "--to-revision", "99")
        assert "iris has no revision 99; there are: " in wrong.stderr


async def test_a_spec_that_a_service_of_the_name_has_left_becomes_the_next_ones(cluster, client, namespace) -> None:
    """Nobody collects garbage here, as in the moment before it is done."""
    await definitions.install(client, *our_crds())

    async def change(uri: str) -> None:
        patch = {"spec": {"predictor": {"model": {"storageUri": uri}}}}
        await client.patch(INFERENCE_SERVICES, "iris", patch, namespace)

    async def history() -> list[Object]:
        service = await client.get(INFERENCE_SERVICES, "iris", namespace)
        return revisions_of(service, (await client.list(CONTROLLER_REVISIONS, namespace)).items)

    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace, _built):
        for _ in range(2):
            await client.create(INFERENCE_SERVICES, service("gs://a"), namespace)
            await change("gs://b")
            await until(history, "the change is kept")
            await client.delete(INFERENCE_SERVICES, "iris", namespace)
