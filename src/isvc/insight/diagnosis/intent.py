"""What its controller would do for an object: the controller's own plan, made from a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from isvc.api.codec import DecodeError
from isvc.api.kinds import row_of
from isvc.engine.gatherer import Gatherer
from isvc.engine.kind import Wait
from isvc.engine.plan import Child, Reference, Stop
from isvc.insight.diagnosis.accounts import missing_account
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.diagnosis.snapshot import Snapshot
from isvc.kube.errors import Forbidden
from isvc.kube.objects import Key, Object
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs.controllers import make_kind, reads_of
from isvc.serving.config import CONFIG_MAP
from isvc.serving.environment import Environment
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock


@dataclass(frozen=True, slots=True)
class Intent:
    """`children` should exist; `problem` says why there are not more; `config` what is wrong with the configuration.

    `sources` are what they were planned from, besides the object itself.
    """

    children: tuple[Child, ...] = ()
    problem: Finding | None = None
    suspicions: tuple[Finding, ...] = ()
    config: str = ""
    sources: tuple[Reference, ...] = ()


async def plan_for(client: Client, snapshot: Snapshot, service: Object) -> Intent:
    row = row_of(service)
    if row is None or not row.manager:
        return Intent()
    environment = Environment(system_namespace=snapshot.system_namespace)
    gatherer = Gatherer(_Looking(client), SystemClock())
    kind = make_kind(row, snapshot.reader(reads_of(row, environment)), environment)
    answers = gatherer.answers()
    try:
        observed = await gatherer.observe(kind, service, answers)
        planned = await gatherer.plan(kind, observed, answers)
    except Wait as wait:
        return _without_configuration(snapshot, str(wait))
    except DecodeError as error:
        remedy = "correct that field; our webhooks refuse such a service where they are installed"
        return Intent(problem=Finding("InvalidSpec", str(error), remedy))
    except Forbidden as error:
        return _unreadable(error.message)
    if planned.stop is not None and planned.stop.missing in snapshot.unread:
        return _unreadable(f"you may not read {planned.stop.missing.plural}")
    return Intent(
        tuple(child.fill() for child in planned.wanted()),
        _problem(planned.stop) if planned.stop else None,
        tuple(Finding(each.reason, each.message, each.remedy, Level.WARNS) for each in kind.doubts(observed, planned)),
        sources=((CONFIG_MAPS, Key(snapshot.system_namespace, CONFIG_MAP)), *kind.sources(observed, planned)),
    )


class _Looking:
    """A cluster as somebody sees it who may look, and perhaps not create anything: then nobody knows what it allows."""

    def __init__(self, client: Client) -> None:
        self.get, self.server_version, self._create = client.get, client.server_version, client.create

    async def create(self, resource: Resource, obj: Object, *, dry_run: bool = True) -> Object:
        try:
            return await self._create(resource, obj, dry_run=True)
        except Forbidden:
            return obj


def _problem(stop: Stop) -> Finding:
    missing = missing_account("its pods are not created", stop.message)
    remedy, level = stop.remedy or "change the service accordingly", Level.WAITS if stop.waits else Level.BLOCKS
    return missing or Finding(stop.reason, stop.sentence, remedy, level)


def _without_configuration(snapshot: Snapshot, problem: str) -> Intent:
    """Nothing can be planned without a configuration, be it bad or not this user's to read."""
    if CONFIG_MAPS not in snapshot.unread:
        return Intent(config=problem)
    return _unreadable(f"you may not read ConfigMap {CONFIG_MAP} in namespace {snapshot.system_namespace}")


def _unreadable(why: str) -> Intent:
    """Says that what should exist is not known, since this user may not read what it depends on."""
    message = f"what should exist for this service could not be planned: {why}"
    return Intent(suspicions=(Finding("NotAllowedToRead", message, "ask as somebody who may", Level.WARNS),))
