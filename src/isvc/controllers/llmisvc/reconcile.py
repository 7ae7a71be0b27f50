"""Reconciling an LLMInferenceService: observe, plan, apply, fold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

from isvc.api.annotations import LLM_FINALIZER, is_stopped
from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.observe import Observer, Reads
from isvc.controllers.llmisvc.observed import Certificate, CertificateNeeded, Merged, Observed
from isvc.controllers.llmisvc.plan import plan
from isvc.controllers.llmisvc.planned import Planned, Shared
from isvc.controllers.llmisvc.presets import NotCombined, pins
from isvc.controllers.llmisvc.rendered import RenderedSpecs, refusal
from isvc.controllers.llmisvc.reporting import Report, Reporter
from isvc.controllers.llmisvc.router.observe import waiting_for
from isvc.controllers.llmisvc.status import conditions as c
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.controllers.llmisvc.status.fold import begun, combined, fold, halted, references
from isvc.engine.apply import Engine
from isvc.engine.commit import Commit
from isvc.engine.dependents import Dependents
from isvc.engine.events import WARNING, Event, child_events
from isvc.engine.outcome import Created, Deleted, Outcome
from isvc.engine.outcome import Result as ChildResult
from isvc.engine.plan import ChildKey
from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import Key, Object, finalizers_of, is_being_deleted, labels_of, name_of, namespace_of
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, Resource
from isvc.serving.config import Config
from isvc.serving.credentials import NotLookedUp
from isvc.serving.environment import Environment
from isvc.serving.llm import names
from isvc.serving.llm.labels import NAME
from isvc.toolkit.cache import Memory
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, timestamp
from isvc.toolkit.controller import Result
from isvc.toolkit.polled_reads import PolledReads
from isvc.toolkit.recorder import EventRecorder
from isvc.wire.x509.issue import issue_self_signed

log = logging.getLogger(__name__)

Results: TypeAlias = dict[ChildKey, ChildResult]

MAX_PASSES: Final = 2
AFTER_REPAIR: Final = 1.0  # who edits one child often edits another, without a watch that reports it
FIRST_RETRY: Final = 2.0  # for what may appear without a watch that reports it; later retries are further apart
LAST_RETRY: Final = 60.0
AFTER_FAILED_CHECK: Final = 5.0
REREAD: Final = 300.0  # no watch reports an edit of a ConfigMap without our label
WAIT_FOR_GROUP: Final = 5.0


class Reconciler:
    def __init__(
        self,
        client: Client,
        cache: Memory,
        recorder: EventRecorder,
        clock: Clock,
        system_namespace: str,
        environment: Environment,
        dependencies: Dependents,
    ) -> None:
        self._client = client
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._dependencies = dependencies
        self._observer = Observer(cache, system_namespace, environment)
        self._engine = Engine(client, cache)
        self._commit = Commit(client, cache)
        self._rendered = RenderedSpecs(client)
        self._reporter = Reporter(self._commit, recorder, clock)
        self._others = PolledReads(client, clock, absent=1)

    async def reconcile(self, key: Key) -> Result | None:
        raw = self._observer.service(key)
        if raw is None:
            self._dependencies.record(key, frozenset())
            self._reporter.forget(key)
            return None
        if is_being_deleted(raw):
            return await self._delete(raw)
        config = self._observer.configuration.in_force()
        if config is None:
            return self._observer.configuration.wait(key)
        raw = await self._commit.add_finalizer(LLM_INFERENCE_SERVICES, raw, LLM_FINALIZER)
        return await self._reporter.publish(raw, await self._reconcile(raw, config))

    async def _reconcile(self, raw: Object, config: Config) -> Report:
        now = timestamp(self._clock.now())
        reads = self._observer.reads(Key.of(raw))
        edit = begun(raw, now, pins(raw.get("status") or {}, self._observer.sources(reads)))
        try:
            reads, merged = await self._combine(raw, config, reads, edit)
        except NotCombined as error:
            event = Event(WARNING, "Error", f"Reconciliation failed: {error.message}")
            return Report(edit.result(), (event,), self._retry(edit))
        except ApiError as error:
            log.warning("%s: its merged spec could not be checked: %s", Key.of(raw), error)
            return Report(edit.result(), (), Result(requeue_after=AFTER_FAILED_CHECK))
        observed, planned, outcomes = await self._apply(raw, config, merged, reads, now)
        self._dependencies.record(Key.of(raw), _references(observed))
        fold(edit, observed, planned, outcomes[-1])
        halt = halted(planned, observed, outcomes[-1])
        after = self._retry(edit) if halt else _after(planned, outcomes[-1], self._reads_unwatched(merged))
        return Report(edit.result(), _events(observed, planned, outcomes), after)

    def _reads_unwatched(self, merged: Merged) -> bool:
        """Whether the scheduler's configuration comes from a ConfigMap that is not watched."""
        source = merged.scheduler_config_map
        return source is not None and self._cache.get(CONFIG_MAPS, source.name, source.namespace) is None

    def _retry(self, edit: StatusEdit) -> Result:
        """Reconcile again a service that lacks something: the longer it has lacked it, the later."""
        since = (edit.conditions.get(c.READY) or {}).get("lastTransitionTime")
        age = (self._clock.now() - datetime.fromisoformat(since)).total_seconds() if since else 0.0
        return Result(requeue_after=min(max(age / 20, FIRST_RETRY), LAST_RETRY))

    # -- steps ------------------------------------------------------------------------------------------------------

    async def _combine(self, raw: Object, config: Config, reads: Reads, edit: StatusEdit) -> tuple[Reads, Merged]:
        """Merge and check, and mark PresetsCombined; a service that is stopped needs no configurations to stay so."""
        merged: Merged | None = None
        try:
            reads, merged = await self._merge(raw, config, reads)
            await self._rendered.check(raw, merged)
        except (NotCombined, ApiError) as error:
            applied = references(merged.applied) if merged else []
            if is_stopped(raw):
                edit.mark(c.PRESETS_COMBINED, "False", "Stopped", f"Service is stopped with warning: {error}")
                return reads, Merged(raw.get("spec") or {})
            edit.fields["appliedConfigs"] = applied
            if isinstance(error, NotCombined):
                edit.mark(c.PRESETS_COMBINED, "False", error.reason, error.message)
            elif merged is not None:
                edit.mark(c.PRESETS_COMBINED, "Unknown", "ValidationUnavailable", refusal(error, merged))
            raise
        combined(edit, merged)
        return reads, merged

    async def _merge(self, raw: Object, config: Config, reads: Reads) -> tuple[Reads, Merged]:
        while True:
            try:
                return reads, self._observer.merge(raw, config, reads)
            except NotLookedUp as missing:
                maps = {Key(namespace_of(raw), name): await self._config_map(name, raw) for name in missing.names}
                reads = replace(reads, config_maps={**reads.config_maps, **maps})

    async def _config_map(self, name: str, raw: Object) -> Object | None:
        """Read afresh: it is often edited together with the service that refers to it."""
        try:
            return await self._client.get(CONFIG_MAPS, name, namespace_of(raw))
        except NotFound:
            return None

    async def _apply(
        self, raw: Object, config: Config, merged: Merged, reads: Reads, now: str
    ) -> tuple[Observed, Planned, list[Outcome]]:
        """Apply the plan; twice if it created something, since one child may name what another was given."""
        outcomes: list[Outcome] = []
        while True:
            observed = await self._with_version(self._observer.observe(raw, config, merged, reads, now))
            observed, planned = await self._plan(observed)
            reads = replace(reads, lookup=observed.lookup)
            outcome = await self._engine.apply(raw, planned.plan)
            outcome.results |= await self._remove(planned, raw)
            outcomes.append(outcome)
            created = any(isinstance(result, Created) for result in outcome.results.values())
            if not created or outcome.refusal or len(outcomes) == MAX_PASSES:
                return observed, planned, outcomes

    async def _plan(self, observed: Observed) -> tuple[Observed, Planned]:
        """Plan, reading secrets and making certificates as planning asks for them."""
        while True:
            try:
                return observed, plan(observed)
            except NotLookedUp as missing:
                found = await self._read(missing.resource, missing.names, observed.namespace)
                observed = replace(observed, lookup=observed.lookup.knowing(missing.resource, found))
            except CertificateNeeded as needed:
                now = self._clock.now()
                pair = await asyncio.to_thread(issue_self_signed, needed.hosts, now, needed.life)
                observed = replace(observed, certificate=Certificate(pair.certificate, pair.key))

    async def _with_version(self, observed: Observed) -> Observed:
        """The version of Kubernetes, which matters only if models may come as image volumes."""
        if observed.config.storage_initializer.oci_mode != "native":
            return observed
        return replace(observed, kubernetes=await self._client.server_version())

    async def _read(self, resource: Resource, wanted: tuple[str, ...], namespace: str) -> Mapping[str, Object | None]:
        found = await asyncio.gather(*(self._others.get(resource, name, namespace) for name in wanted))
        return dict(zip(wanted, found, strict=True))

    # -- the end ----------------------------------------------------------------------------------------------------

    async def _delete(self, raw: Object) -> Result | None:
        """Wait until no other member of the group routes here; then the garbage collector takes the children."""
        self._dependencies.record(Key.of(raw), frozenset())
        if LLM_FINALIZER not in finalizers_of(raw):
            return None
        if member := waiting_for(self._cache, raw):
            edit = StatusEdit(raw.get("status") or {}, timestamp(self._clock.now()))
            message = f"waiting for member {member} to remove backendRef before deletion"
            edit.mark(c.GROUP_READY, "False", "FinalizationPending", message)
            edit.clear(c.GROUP_DEGRADED)
            await self._commit.status(LLM_INFERENCE_SERVICES, raw, edit.result())
            return Result(requeue_after=WAIT_FOR_GROUP)
        binding = names.scheduler_cluster_role_binding(namespace_of(raw), name_of(raw))
        removed = Outcome(
            namespace=namespace_of(raw), results=await self._remove_one(Shared(CLUSTER_ROLE_BINDINGS, binding), raw)
        )
        for event in child_events(removed):
            self._recorder.event(raw, *event)
        await self._commit.remove_finalizer(LLM_INFERENCE_SERVICES, raw, LLM_FINALIZER)
        return None

    async def _remove(self, planned: Planned, raw: Object) -> Results:
        removed: Results = {}
        if planned.complete:
            for area in planned.areas.values():
                for shared in area.removals:
                    removed |= await self._remove_one(shared, raw)
        return removed

    async def _remove_one(self, shared: Shared, raw: Object) -> Results:
        """Delete an object that has no owner, if its labels say that it is this service's."""
        live = self._cache.get(shared.resource, shared.name, shared.namespace)
        if live is None or labels_of(live).get(NAME) != name_of(raw):
            return {}
        await self._commit.deletion(shared.resource, live)
        return {ChildKey(shared.resource, shared.name): Deleted()}


def _references(observed: Observed) -> frozenset[tuple[Resource, Key]]:
    config_map = observed.merged.scheduler_config_map
    return observed.network.references | ({(CONFIG_MAPS, config_map)} if config_map else set())


def _events(observed: Observed, planned: Planned, outcomes: list[Outcome]) -> tuple[Event, ...]:
    halt = halted(planned, observed, outcomes[-1])
    failure = (Event(WARNING, "Error", f"Reconciliation failed: {halt.stop.message}"),) if halt else ()
    changes = (event for outcome in outcomes for event in child_events(outcome))
    warnings = (event for area in planned.areas.values() for event in area.events)
    return (*changes, *warnings, *failure)


def _after(planned: Planned, outcome: Outcome, reads_unwatched: bool) -> Result | None:
    if outcome.has_repaired:
        return Result(requeue_after=AFTER_REPAIR)
    later = [area.again for area in planned.areas.values() if area.again is not None]
    if reads_unwatched:
        later.append(REREAD)
    return Result(requeue_after=min(later)) if later else None
