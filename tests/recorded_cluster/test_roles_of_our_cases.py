"""The chart's roles are enough for what KServe has not: KEDA's HTTP add-on and budgets for disruptions, and no more."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path

import pytest
from tests.golden.player import ADD_ON, Player, read_case, read_recording
from tests.recorded_cluster import rights
from tests.recorded_cluster.servers import AuditedServer
from tests.recordings import FOLDER
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
from isvc.kube.errors import AlreadyExists, NotFound
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, POD_DISRUPTION_BUDGETS, Resource
from isvc.serving.config import CONFIG_MAP
from isvc.serving.thirdparty import INTERCEPTOR_ROUTES, REFERENCE_GRANTS, SCALED_OBJECTS
from isvc.toolkit.client import Client, kubeconfig

SYSTEM = "kserve"
CASES = {
    "asleep-gateway": ("owl", (INTERCEPTOR_ROUTES, REFERENCE_GRANTS, SCALED_OBJECTS)),
    "disruption-budgets": ("yew", (POD_DISRUPTION_BUDGETS,)),
}
"""The service of a case, and what of it is edited."""
EDITS: dict[Resource, Object] = {
    INTERCEPTOR_ROUTES: {"timeouts": {"readiness": "1s"}},
    POD_DISRUPTION_BUDGETS: {"maxUnavailable": "99%"},
    REFERENCE_GRANTS: {"to": [{"group": "", "kind": "Service", "name": "other"}]},
    SCALED_OBJECTS: {"cooldownPeriod": 1},
}
SOMETIMES = {"get"}  # of one that was changed or taken by somebody else


@pytest.fixture
async def player(server: AuditedServer) -> AsyncIterator[Player]:
    async with Client.connect(kubeconfig.load(server.cluster.kubeconfig)) as client:
        with contextlib.suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": SYSTEM}})
        yield Player(client, SYSTEM)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"what starts the server lies beside the recorded cases in {FOLDER}")
async def test_every_right_is_used_and_none_is_missing(server: AuditedServer, player: Player, tmp_path: Path):
    for name, (service, kinds) in CASES.items():
        case, states = read_case(name), read_recording(name)
        with contextlib.suppress(NotFound):
            await player.client.delete(CONFIG_MAPS, CONFIG_MAP, SYSTEM)
        await player.set_up(case)
        with rights.running(server, "manager", tmp_path):
            for step, state in zip(case["steps"], states, strict=True):
                await player.play(step)
                there = partial(is_as_recorded, player, set(state["objects"]), service)
                await until(there, f"{name}: {step['step']}", 120)
                edited = await edit(player, kinds) if step is case["steps"][0] else []
                await until(partial(are_mended, player, edited), f"{name}: edits are undone", 120)
            for left in (await player.client.list(INFERENCE_SERVICES, SYSTEM)).items:
                await player.client.delete(INFERENCE_SERVICES, name_of(left), SYSTEM)
            await until(partial(has_no_services, player), "the services go", 120)
    compare(server, "manager", EDITS)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"what starts the server lies beside the recorded cases in {FOLDER}")
async def test_every_right_on_budgets_of_llms_is_used(server: AuditedServer, player: Player, tmp_path: Path):
    case = read_case("asleep-llm")
    *templates, service = case["steps"][0]["apply"]
    with contextlib.suppress(NotFound):
        await player.client.delete(CONFIG_MAPS, CONFIG_MAP, SYSTEM)
    await player.set_up(case)
    service["metadata"] = {"name": "yak", "annotations": {"isvc.dev/disruption-budget": "1"}}
    service["spec"] = {"model": service["spec"]["model"], "replicas": 2}
    with rights.running(server, "llmisvc", tmp_path):
        await player.play({"apply": [*templates, service]})
        await until(partial(has_budgets, player, 1), "there is a budget", 120)
        await until(partial(are_mended, player, await edit(player, [POD_DISRUPTION_BUDGETS])), "it is mended", 120)
        await player.play({"apply": [{**service, "spec": {"replicas": 1}}]})
        await until(partial(has_budgets, player, 0), "one replica has no budget", 120)
    await player.client.delete(LLM_INFERENCE_SERVICES, "yak", SYSTEM)
    compare(server, "llmisvc", [POD_DISRUPTION_BUDGETS])


def compare(server: AuditedServer, program: str, resources: Iterable[Resource]) -> None:
    """Asserts that nothing was refused to a program, and that it used what it may do to these resources."""
    events = rights.of_account(server.audit(), program)
    assert rights.refused(events) == set()
    ours = {(each.group, each.plural) for each in resources}
    granted = {each for each in rights.granted(program) if (each.group, each.resource) in ours}
    idle = {str(each) for each in granted - rights.used(events) if each.verb not in SOMETIMES}
    assert idle == set(), f"nothing needs these rights: {idle}"


async def has_budgets(player: Player, number: int) -> bool:
    return len((await player.client.list(POD_DISRUPTION_BUDGETS, SYSTEM)).items) == number


async def is_as_recorded(player: Player, wanted: set[str], service: str) -> bool:
    """Returns whether there is of a service what was recorded: nobody collects what the ones before left."""
    await player.make_ready()
    found = {key for key in await player.picture() if f"/{service}" in key}
    return found == {key for key in wanted if f"/{service}" in key}


async def edit(player: Player, kinds: Iterable[Resource]) -> list[tuple[Resource, str, str]]:
    """Takes the spec of all that the manager made away from it, but for fields that have to be there."""
    edited = []
    for resource in kinds:
        namespace = ADD_ON if resource is REFERENCE_GRANTS else SYSTEM
        for obj in (await player.client.list(resource, namespace)).items:
            await player.client.patch(resource, name_of(obj), {"spec": EDITS[resource]}, namespace)
            edited.append((resource, name_of(obj), namespace))
    return edited


async def are_mended(player: Player, edited: list[tuple[Resource, str, str]]) -> bool:
    found = [(resource, await player.client.get(resource, name, place)) for resource, name, place in edited]
    return all({**obj["spec"], **EDITS[resource]} != obj["spec"] for resource, obj in found)


async def has_no_services(player: Player) -> bool:
    return not (await player.client.list(INFERENCE_SERVICES, SYSTEM)).items
