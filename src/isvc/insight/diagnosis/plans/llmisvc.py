"""The plan of an LLMInferenceService."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS
from isvc.controllers.llmisvc.observe import Observer, Reads
from isvc.controllers.llmisvc.observed import Certificate, CertificateNeeded, Merged, Observed
from isvc.controllers.llmisvc.plan import plan
from isvc.controllers.llmisvc.planned import Planned
from isvc.controllers.llmisvc.presets import NotCombined
from isvc.controllers.llmisvc.watches import reads as declared_reads
from isvc.insight.diagnosis.accounts import missing_account
from isvc.insight.diagnosis.finding import Finding
from isvc.insight.diagnosis.intent import Intent
from isvc.insight.diagnosis.intent import _configuration as configuration
from isvc.insight.diagnosis.intent import _unconfigured as unconfigured
from isvc.insight.diagnosis.snapshot import Snapshot
from isvc.kube.errors import Forbidden, NotFound
from isvc.kube.objects import Key, Object, namespace_of
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.serving.credentials import NotLookedUp
from isvc.serving.environment import Environment
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock, timestamp
from isvc.wire.x509.issue import issue_self_signed

_PRESETS = "correct the configuration that is named, or the service's baseRefs"


async def intent(client: Client, snapshot: Snapshot, service: Object) -> Intent:
    environment = Environment()
    reader = snapshot.reader(declared_reads(snapshot.system_namespace, environment))
    observer = Observer(reader, snapshot.system_namespace, environment)
    config = observer.configuration.in_force()
    if config is None:
        return unconfigured(snapshot, observer.configuration.problem)
    try:
        reads, merged = await _merge(client, observer, service, config)
    except NotCombined as error:
        return Intent(problem=Finding(error.reason, f"presets cannot be combined: {error.message}", _PRESETS))
    observed = observer.observe(service, config, merged, reads, timestamp(SystemClock().now()))
    planned = await _plan(client, observed)
    stop = next((area.stop for area in planned.areas.values() if area.stop), None)
    problem = _stopped(stop.reason, stop.message) if stop else None
    presets = ((LLM_INFERENCE_SERVICE_CONFIGS, Key(each.namespace, each.name)) for each in merged.applied)
    return Intent(planned.plan.wanted(), problem, sources=(configuration(snapshot), *presets))


def _stopped(reason: str, message: str) -> Finding:
    missing = missing_account("its pods are not created", message)
    return missing or Finding(reason, message, "change the service accordingly")


async def _merge(client: Client, observer: Observer, service: Object, config: Config) -> tuple[Reads, Merged]:
    reads, namespace = observer.reads(Key.of(service)), namespace_of(service)
    while True:
        try:
            return reads, observer.merge(service, config, reads)
        except NotLookedUp as missing:
            found = await _look_up(client, missing, namespace)
            maps = {Key(namespace, name): config_map for name, config_map in found.items()}
            reads = replace(reads, config_maps={**reads.config_maps, **maps})


async def _plan(client: Client, observed: Observed) -> Planned:
    while True:
        try:
            return plan(observed)
        except NotLookedUp as missing:
            found = await _look_up(client, missing, observed.namespace)
            observed = replace(observed, lookup=observed.lookup.knowing(missing.resource, found))
        except CertificateNeeded as needed:
            pair = await asyncio.to_thread(issue_self_signed, needed.hosts, SystemClock().now(), needed.life)
            observed = replace(observed, certificate=Certificate(pair.certificate, pair.key))


async def _look_up(client: Client, missing: NotLookedUp, namespace: str) -> dict[str, Object | None]:
    return {name: await _get(client, missing.resource, name, namespace) for name in missing.names}


async def _get(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return await client.get(resource, name, namespace)
    except (NotFound, Forbidden):
        return None
