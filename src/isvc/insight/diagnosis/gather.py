"""Reads what a diagnosis needs from a cluster: the one part of it that is not pure. Nothing is ever changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from isvc.engine.apply import is_taken, whose
from isvc.engine.plan import Child
from isvc.insight.diagnosis.diagnose import diagnose
from isvc.insight.diagnosis.dry_runs import DryRuns, outdated_children, outdated_pods, refusals
from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding, Place
from isvc.insight.diagnosis.intent import plan_for
from isvc.insight.diagnosis.model_causes import cache_of, lists_of
from isvc.insight.diagnosis.pods import pods_of
from isvc.insight.diagnosis.snapshot import OWNED, Snapshot, take
from isvc.kube.errors import ApiError
from isvc.kube.masking import plain_text
from isvc.kube.objects import Key, Object, namespace_of, uid_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import EVENTS, PODS
from isvc.kube.timestamps import timestamp
from isvc.serving.http_routes import gateways_of
from isvc.serving.thirdparty import GATEWAYS, HTTP_ROUTES
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.failure import ClusterError

LOG_LINES: Final = 8
LONGEST_LINE: Final = 2000
RECENT: Final = timedelta(minutes=2)


async def examine(client: Client, service: Object, snapshot: Snapshot | None = None) -> list[Finding]:
    """Finds what is wrong with a service, the root cause first and with the last log lines of its container."""
    snapshot = snapshot or await take(client, namespace_of(service))
    return await explain(client, await gather(client, service, snapshot))


async def explain(client: Client, evidence: Evidence) -> list[Finding]:
    """Returns the findings that follow from the evidence, and the last log lines of a container it leads to."""
    findings = diagnose(evidence)
    if findings and findings[0].place is not None:
        log = await _log(client, findings[0].place, namespace_of(evidence.service))
        findings[0] = replace(findings[0], log=log)
    return findings


async def gather(client: Client, service: Object, snapshot: Snapshot, dry_runs: DryRuns | None = None) -> Evidence:
    """`dry_runs` that remember spare the API server the same questions, where a service is looked at often."""
    dry_runs = dry_runs or DryRuns(client)
    intent = await plan_for(client, snapshot, service)
    evidence = Evidence(
        service=service,
        namespace=snapshot.namespace,
        owned=_owned_objects(service, snapshot),
        pods=pods_of(service, snapshot.objects.get(PODS, ())),
        events=snapshot.objects.get(EVENTS, ()),
        planned=intent.children,
        taken=_taken_children(service, snapshot, intent.children),
        problem=intent.problem,
        suspicions=intent.suspicions,
        config=intent.config,
        sources=snapshot.find_all(intent.sources),
        recently=timestamp(SystemClock().now() - RECENT),
        gateways=_gateways(snapshot),
        cache=cache_of(service, snapshot.objects),
        lists=lists_of(service, snapshot.objects),
        unread=snapshot.unread,
    )
    if evidence.problem or evidence.taken:
        return evidence
    if not evidence.is_ready:
        return replace(evidence, refused=await refusals(dry_runs, snapshot, intent.children))
    children = await outdated_children(dry_runs, service, snapshot, intent.children)
    pods = await outdated_pods(dry_runs, snapshot, evidence.pods, evidence.sources)
    return replace(evidence, outdated=(*children, *pods))


def _owned_objects(service: Object, snapshot: Snapshot) -> list[Object]:
    """Returns what the service controls, and what that controls."""
    candidates = [obj for resource in (*OWNED, PODS) for obj in snapshot.objects.get(resource, ())]
    owned: dict[str, Object] = {}
    owners = {uid_of(service)}
    while True:
        found = {uid_of(obj): obj for obj in candidates if (controller_of(obj) or {}).get("uid") in owners}
        if found.keys() == owned.keys():
            return list(owned.values())
        owned, owners = found, {uid_of(service), *found}


def _taken_children(service: Object, snapshot: Snapshot, children: Sequence[Child]) -> list[str]:
    found = ((child, snapshot.live(child)) for child in children)
    return [whose(child.resource, live) for child, live in found if live and is_taken(service, child, live)]


def _gateways(snapshot: Snapshot) -> dict[Key, Object | None]:
    """Returns the gateways that routes name, as far as gateways can be read."""
    if GATEWAYS in snapshot.unread or GATEWAYS in snapshot.absent:
        return {}
    there: dict[Key, Object | None] = {Key.of(gateway): gateway for gateway in snapshot.objects.get(GATEWAYS, ())}
    named = {key: None for route in snapshot.objects.get(HTTP_ROUTES, ()) for key in gateways_of(route)}
    return {**named, **there}


async def _log(client: Client, place: Place, namespace: str) -> tuple[str, ...]:
    path = f"{PODS.path(namespace, place.pod)}/log"
    params = {"container": place.container, "tailLines": str(LOG_LINES)}
    if place.previous:
        params["previous"] = "true"
    try:
        lines = [line[:LONGEST_LINE].decode(errors="replace").rstrip() async for line in client.lines(path, params)]
    except (ApiError, ClusterError):  # no node, no log
        return ()
    return tuple(plain_text(line) for line in lines if line)[-LOG_LINES:]
