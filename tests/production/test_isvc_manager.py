"""What happens to a cluster whose managers are killed, cut off, or given new certificates, at the worst of times."""

from __future__ import annotations

import asyncio
import random
import re
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count

from tests.cluster.faulty_proxy import FaultyProxy
from tests.production.installation import SYSTEM, Installation, Replica
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import AlreadyExists, Conflict, InternalError
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.resource import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INGRESSES,
    LEASES,
    NAMESPACES,
    SECRETS,
    SERVICES,
)

NAMESPACE = "team"
SERVICES_MADE = 300
KILLS = 5
SEED = 7  # which services are edited and deleted; when a kill happens is up to the machine
RECONCILED = re.compile(r'reconcile_total\{controller="inferenceservice",result="success"\} ([0-9.]+)')


def service(name: str, replicas: int = 1) -> Object:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"gs://models/{name}"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"predictor": {"model": model, "minReplicas": replicas, "maxReplicas": replicas + 2}},
    }


async def make_namespace(installation: Installation) -> None:
    await installation.client.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    )


async def children(installation: Installation) -> dict[str, dict[str, Object]]:
    """Every child in the namespace, by plural and name."""
    found = {}
    for resource in (DEPLOYMENTS, SERVICES, HORIZONTAL_POD_AUTOSCALERS, INGRESSES):
        listed = await installation.client.list(resource, NAMESPACE)
        found[resource.plural] = {name_of(each): each for each in listed.items}
    return found


async def settled(installation: Installation) -> bool:
    """Whether every service has been looked at since its last edit, and the deleted ones are gone."""
    listed = await installation.client.list(INFERENCE_SERVICES, NAMESPACE)
    return all(
        dig(each, "status", "observedGeneration") == each["metadata"]["generation"]
        and not each["metadata"].get("deletionTimestamp")
        for each in listed.items
    )


async def become_ready(installation: Installation) -> None:
    """Report every Deployment as available, as a Deployment controller would."""
    for deployment in (await installation.client.list(DEPLOYMENTS, NAMESPACE)).items:
        conditions = [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ]
        status = {"conditions": conditions, "observedGeneration": deployment["metadata"]["generation"]}
        await installation.client.patch(
            DEPLOYMENTS, name_of(deployment), {"status": status}, NAMESPACE, subresource="status"
        )


async def test_three_hundred_services_while_managers_are_killed_at_random(installation: Installation):
    """Services are made, edited and deleted while one replica after another dies: the end is as if nothing happened."""
    await make_namespace(installation)
    for name in ("a", "b"):
        await (await installation.start(name)).ready()
    await installation.led()
    chance = random.Random(SEED)
    made: dict[str, int] = {}
    killed = asyncio.create_task(_kill_now_and_then(installation))
    for number in range(SERVICES_MADE):
        name = f"s{number}"
        await _insist(partial(installation.client.create, INFERENCE_SERVICES, service(name)))
        made[name] = 1
        if made and chance.random() < 0.2:
            other = chance.choice(sorted(made))
            made[other] = 3
            patch = {"spec": {"predictor": {"minReplicas": 3, "maxReplicas": 5}}}
            await _insist(partial(installation.client.patch, INFERENCE_SERVICES, other, patch, NAMESPACE))
        if chance.random() < 0.05:
            other = chance.choice(sorted(made))
            del made[other]
            await installation.client.delete(INFERENCE_SERVICES, other, NAMESPACE)
    assert await killed == KILLS
    await until(lambda: settled(installation), "all services are settled", within=240, every=1.0)
    await become_ready(installation)

    async def all_ready() -> bool:
        listed = await installation.client.list(INFERENCE_SERVICES, NAMESPACE)
        ready = [each for each in listed.items if _is_ready(each)]
        return len(ready) == len(made) == len(listed.items)

    await until(all_ready, "every service is ready", within=240, every=1.0)
    await _assert_children(installation, made)
    await _assert_nothing_to_do(installation)


async def _kill_now_and_then(installation: Installation) -> int:
    """Kill the leader or the follower, by turns, and start another in its place; how often."""
    for number in range(KILLS):
        leader = await installation.led()
        victim = leader if number % 2 == 0 else next(name for name in installation.replicas if name != leader)
        await asyncio.sleep(random.uniform(0, 1.5))
        await installation.kill(victim)
        await (await installation.start(f"{victim[0]}{number}")).ready()
    return KILLS


async def _insist(write: Callable[[], Awaitable[object]]) -> None:
    """Write, again if the webhook was just killed, as kubectl's user would."""
    for _ in range(100):
        try:
            await write()
        except AlreadyExists:
            return
        except (InternalError, Conflict):
            await asyncio.sleep(0.2)
        else:
            return
    raise AssertionError("the webhooks never came back")


def _is_ready(each: Object) -> bool:
    conditions = {condition["type"]: condition["status"] for condition in dig(each, "status", "conditions") or ()}
    return conditions.get("Ready") == "True"


async def _assert_children(installation: Installation, made: dict[str, int]) -> None:
    """Exactly the children that a fresh cluster would have: none missing, none left over, each as its last spec says.

    No garbage collector runs here: children whose owner is gone are its business, not the manager's.
    """
    live = {each["metadata"]["uid"] for each in (await installation.client.list(INFERENCE_SERVICES, NAMESPACE)).items}
    for plural, found in (await children(installation)).items():
        owned = {
            name
            for name, each in found.items()
            if any(owner["uid"] in live for owner in each["metadata"].get("ownerReferences") or ())
        }
        suffix = "" if plural == "ingresses" else "-predictor"
        expected = {f"{name}{suffix}" for name in made}
        assert owned - {name for name in made if plural == "services"} == expected, plural
        if plural == "horizontalpodautoscalers":
            for name, replicas in made.items():
                assert found[f"{name}-predictor"]["spec"]["minReplicas"] == replicas, name


async def _assert_nothing_to_do(installation: Installation) -> None:
    """A manager that starts over the result changes nothing."""
    for name in list(installation.replicas):
        await installation.kill(name)
    before = await versions(installation)
    fresh = await installation.start("fresh")
    await fresh.ready()
    await installation.led()

    async def all_seen() -> bool:
        done = RECONCILED.search(await fresh.metrics())
        return done is not None and float(done[1]) >= len(before[INFERENCE_SERVICES.plural])

    await until(all_seen, "the fresh manager has seen all services", within=120, every=0.5)
    assert await versions(installation) == before


async def versions(installation: Installation) -> dict[str, dict[str, str]]:
    """The resourceVersion of every service and child."""
    services = await installation.client.list(INFERENCE_SERVICES, NAMESPACE)
    found = await children(installation) | {INFERENCE_SERVICES.plural: {name_of(each): each for each in services.items}}
    return {
        plural: {name: each["metadata"]["resourceVersion"] for name, each in objects.items()}
        for plural, objects in found.items()
    }


async def test_a_leader_that_is_cut_off_stops_before_another_leads(installation: Installation):
    """The lease passes on only after the old leader has ended, or at least stopped writing."""
    await make_namespace(installation)
    async with FaultyProxy(installation.cluster) as proxy:
        first = await installation.start("a", proxy.config.server)
        await first.ready()
        await until(lambda: _leads(installation, "a"), "the first leads", within=60)
        await (await installation.start("b")).ready()
        proxy.go_away()
        await until(lambda: not first.alive, "the first ends", within=60)
        lease = await installation.client.get(LEASES, "kserve-controller-manager-leader-lock", SYSTEM)
        assert lease["spec"]["leaseTransitions"] == 0, "the second led while the first was still there"
        assert "was lost" in first.log.read_text()
        del installation.replicas["a"]
        installation._balance()
        await until(lambda: _leads(installation, "b"), "the second leads", within=60)
        await installation.client.create(INFERENCE_SERVICES, service("after"))
        await until(lambda: settled(installation), within=60, every=0.2)
        assert set((await children(installation))["deployments"]) == {"after-predictor"}


async def _leads(installation: Installation, name: str) -> bool:
    return await installation.leader() == name


async def test_new_certificates_under_load_refuse_no_admission(installation: Installation):
    """The Secret is deleted, so that even the authority is new, while services are made without a pause."""
    await make_namespace(installation)
    replicas = [await installation.start(name) for name in ("a", "b")]
    for replica in replicas:
        await replica.ready()
    before = await asyncio.to_thread(served_certificates, replicas)
    await installation.client.delete(SECRETS, "kserve-webhook-server-cert", SYSTEM)

    async def renewed() -> bool:
        served = await asyncio.to_thread(served_certificates, replicas)
        return served.isdisjoint(before) and len(served) == 1

    rotation = asyncio.create_task(until(renewed, "every replica serves the new certificate", within=200, every=0.5))
    made = 0
    while not rotation.done():
        await installation.client.create(INFERENCE_SERVICES, service(f"s{made}"))
        made += 1
        await asyncio.sleep(0.1)
    await rotation
    assert made > 10, "nothing was admitted meanwhile"
    await installation.client.create(INFERENCE_SERVICES, service("after"))


async def test_a_rolling_restart_under_load_refuses_no_admission(installation: Installation):
    """Both replicas are replaced while services are made without a pause; none of these meets a webhook that is gone.

    Their endpoints go after they were told to end, as on a cluster.
    """
    await make_namespace(installation)
    installation.balancer.strict = True
    flags = ("--leader-elect", "--shutdown-delay-duration=20s")
    for name in ("a", "b"):
        await (await installation.start(name, flags=flags)).ready()
    numbers, made = count(), 0

    async def make_services() -> None:
        nonlocal made
        for number in numbers:
            await installation.client.create(INFERENCE_SERVICES, service(f"s{number}"))
            made += 1

    async def some_more() -> None:
        before = made
        await until(lambda: made >= before + 40 or failed(), "services are made meanwhile", within=120)

    def failed() -> list[BaseException | None]:
        return [each.exception() for each in load if each.done()]

    load = [asyncio.create_task(make_services()) for _ in range(8)]
    await some_more()
    for old, new in (("a", "c"), ("b", "d")):
        await installation.replace(old, new, flags=flags, until_noticed=some_more())
    await some_more()
    assert failed() == []
    for each in load:
        each.cancel()
    await asyncio.wait(load)


def served_certificates(replicas: list[Replica]) -> set[str]:
    return {ssl.get_server_certificate(("127.0.0.1", replica.webhook_port)) for replica in replicas}
