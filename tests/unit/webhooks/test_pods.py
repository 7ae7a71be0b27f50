"""The pod webhook over its pure function: what it reads, when, and how it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, INFERENCE_SERVICES
from isvc.engine.needs import Stored
from isvc.kube.errors import Forbidden, InternalError, NotFound
from isvc.kube.objects import GVK, Object
from isvc.kube.patch import json_patch
from isvc.kube.resource import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Resource
from isvc.serving import annotations as names
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse
from isvc.webhooks.live_reads import MOST_REMEMBERED, LiveReads
from isvc.webhooks.pods import PodMutator

SETTINGS: dict[str, Object] = {"storageInitializer": {}, "logger": {}, "batcher": {}, "agent": {}}
CONFIG_MAP: Object = {
    "metadata": {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"},
    "data": {section: json.dumps(value) for section, value in SETTINGS.items()},
}


class Server:
    """An API server that remembers what it was asked."""

    def __init__(self, *objects: tuple[Resource, Object]) -> None:
        self.objects = MemoryReader(objects)
        self.asked: list[str] = []
        self.spoil: Callable[[str], None] = lambda name: None
        self.held: asyncio.Event | None = None

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        self.asked.append(f"{resource.plural}/{name}")
        await (self.held.wait() if self.held else asyncio.sleep(0))
        self.spoil(name)
        found = self.objects.get(resource, name, namespace)
        if found is None:
            raise NotFound(f'{resource.plural} "{name}" not found')
        return found


def pod(uri: str = "s3://b/m", **labels: str) -> Object:
    return {
        "metadata": {"name": "p", "labels": {names.SERVICE: "s", **labels}, "annotations": {names.SOURCE_URI: uri}},
        "spec": {"containers": [{"name": "kserve-container"}]},
    }


def request(obj: Object, dry_run: bool = False) -> AdmissionRequest:
    return AdmissionRequest("u", "CREATE", "ns", "p", GVK("", "v1", "Pod"), obj, {}, dry_run, {})


def account(*secrets: str) -> tuple[Resource, Object]:
    metadata = {"name": "default", "namespace": "ns"}
    return SERVICE_ACCOUNTS, {"metadata": metadata, "secrets": [{"name": name} for name in secrets]}


def secret(name: str) -> tuple[Resource, Object]:
    return SECRETS, {"metadata": {"name": name, "namespace": "ns"}, "data": {"HF_TOKEN": "dA=="}}


def applied(obj: Object, response: AdmissionResponse) -> Any:
    assert response.allowed, response.message
    return json_patch.apply(obj, list(response.patch))


async def test_reads_the_account_then_its_secrets_side_by_side() -> None:
    server = Server(account("a", "b"), secret("a"), secret("b"))
    response = await PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")(request(pod()))
    mutated = applied(pod(), response)
    assert server.asked == ["serviceaccounts/default", "secrets/a", "secrets/b"]
    env = mutated["spec"]["initContainers"][0]["env"]
    assert [entry["valueFrom"]["secretKeyRef"]["name"] for entry in env[:2]] == ["a", "b"]
    again = await PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")(request(mutated))
    assert applied(mutated, again) == mutated


async def test_pods_that_come_together_share_a_request() -> None:
    server = Server(account("a"), secret("a"))
    mutator = PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")
    await asyncio.gather(*(mutator(request(pod())) for _ in range(20)))
    assert server.asked == ["serviceaccounts/default", "secrets/a"]
    await mutator(request(pod()))
    assert len(server.asked) == 4  # nothing is remembered: the secret may have changed


async def test_other_pods_cost_nothing() -> None:
    server = Server()
    other: Object = {"metadata": {"labels": {}}, "spec": {"containers": []}}
    response = await PodMutator(MemoryReader(), server, "kserve")(request(other))
    assert response.allowed
    assert not response.patch
    assert not server.asked


async def test_a_claim_needs_no_credentials() -> None:
    server = Server()
    response = await PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")(
        request(pod("pvc://c/m"), dry_run=True)
    )
    assert applied(pod("pvc://c/m"), response)["spec"]["volumes"]
    assert not server.asked


async def test_what_is_cached_decides_too() -> None:
    container = {"container": {"name": "vault"}, "supportedUriFormats": [{"prefix": "vault://"}]}
    service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"predictor": {"logger": {"batchSize": 9}}}}
    reader = MemoryReader(
        [
            (CONFIG_MAPS, CONFIG_MAP),
            (CLUSTER_STORAGE_CONTAINERS, {"metadata": {"name": "v"}, "spec": container}),
            (INFERENCE_SERVICES, service),
        ]
    )
    made = pod("vault://m")
    made["metadata"]["annotations"][names.LOGGER] = "true"
    mutated = applied(made, await PodMutator(reader, Server(), "kserve")(request(made)))
    assert mutated["spec"]["initContainers"][0]["name"] == "vault"
    assert "9" in mutated["spec"]["containers"][1]["args"]


async def test_a_refusal_names_the_secret() -> None:
    response = await PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), Server(account("gone")), "kserve")(
        request(pod())
    )
    assert (response.allowed, response.code) == (False, 500)
    assert '"gone"' in response.message


async def test_a_secret_that_may_not_be_read_is_told() -> None:
    server = Server(account("a"))

    def forbid(name: str) -> None:
        if name == "a":
            raise Forbidden("you may not")

    server.spoil = forbid
    with pytest.raises(InternalError, match='cannot read Secret "a": you may not'):
        await PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")(request(pod()))


def credentials(obj: Object) -> list[str]:
    return [entry["name"] for entry in obj["spec"]["initContainers"][0]["env"] if "valueFrom" in entry]


def put(server: Server, *objects: tuple[Resource, Object]) -> None:
    for resource, obj in objects:
        server.objects.put(resource, obj)


async def test_what_followed_the_last_time_is_read_ahead() -> None:
    server = Server(account("a"), secret("a"))
    mutator = PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")
    await mutator(request(pod()))
    server.asked.clear()
    server.held = asyncio.Event()
    second = asyncio.create_task(mutator(request(pod())))
    while len(server.asked) < 2:
        await asyncio.sleep(0)
    assert server.asked == ["serviceaccounts/default", "secrets/a"]
    server.held.set()
    assert credentials(applied(pod(), await second)) == ["HF_TOKEN"]


async def test_a_wrong_guess_decides_nothing_and_is_forgotten() -> None:
    server = Server(account("a"), secret("a"))
    mutator = PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")
    await mutator(request(pod()))
    put(server, account())

    def forbid(name: str) -> None:
        if name == "a":
            raise Forbidden("you may not")

    server.spoil = forbid
    assert not credentials(applied(pod(), await mutator(request(pod()))))
    server.asked.clear()
    assert not credentials(applied(pod(), await mutator(request(pod()))))
    assert server.asked == ["serviceaccounts/default"]


async def test_every_pod_sees_what_is_there_now() -> None:
    server = Server(account("a"))
    mutator = PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), server, "kserve")
    assert not (await mutator(request(pod()))).allowed
    put(server, secret("a"))
    assert credentials(applied(pod(), await mutator(request(pod())))) == ["HF_TOKEN"]
    put(server, (SECRETS, {"metadata": {"name": "a", "namespace": "ns"}, "data": {"MODELSCOPE_API_TOKEN": "dA=="}}))
    assert credentials(applied(pod(), await mutator(request(pod())))) == ["MODELSCOPE_API_TOKEN"]
    put(server, account("b"))
    assert '"b"' in (await mutator(request(pod()))).message


async def test_accounts_that_lead_to_each_other_end() -> None:
    config: Object = {**CONFIG_MAP, "data": CONFIG_MAP["data"] | {"logger": json.dumps({"storage": {"path": "/logs"}})}}
    server = Server(account(), (SERVICE_ACCOUNTS, {"metadata": {"name": "logger-sa", "namespace": "ns"}}))
    mutator = PodMutator(MemoryReader([(CONFIG_MAPS, config)]), server, "kserve")
    one, other = pod(), pod()
    one["metadata"]["annotations"][names.LOGGER] = other["metadata"]["annotations"][names.LOGGER] = "true"
    other["spec"]["serviceAccountName"] = "logger-sa"
    for made in (one, other, one, other):
        assert (await mutator(request(made))).allowed


async def test_what_is_remembered_is_bounded() -> None:
    reads = LiveReads(Server())
    for number in range(2 * MOST_REMEMBERED):
        question = (Stored(SECRETS, str(number), "ns"),)
        reads.note(question, question)
    assert reads.after((Stored(SECRETS, "0", "ns"),)) is None
    assert reads.after((Stored(SECRETS, str(2 * MOST_REMEMBERED - 1), "ns"),)) is not None
