"""Observes services: reads from memory all that decisions about one are based on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final
from weakref import WeakSet

from isvc.api.annotations import is_stopped
from isvc.api.defaults.llm import set_llm_defaults
from isvc.api.llm.v1alpha2 import LLMInferenceService
from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS
from isvc.controllers.llmisvc.observed import Combination, Merged, Observed
from isvc.controllers.llmisvc.plan import CHILDREN
from isvc.controllers.llmisvc.presets import NotCombined, Sources, combine, pins
from isvc.controllers.llmisvc.rendered import ask_about, refusal, was_good
from isvc.controllers.llmisvc.router.observe import observe_network
from isvc.engine.needs import Answers, ServerVersion, Stored
from isvc.kube.conditions import FALSE, UNKNOWN
from isvc.kube.errors import ApiError, BadRequest, Invalid
from isvc.kube.objects import Key, Object, deep_copy, generation_of, labels_of, name_of, namespace_of, uid_of
from isvc.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    SERVICE_ACCOUNTS,
    Resource,
)
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.serving.environment import Environment
from isvc.serving.llm import names
from isvc.serving.llm.labels import NAME, SERVICE
from isvc.serving.llm.presets import Settings
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
)
from isvc.serving.workload.scalers import INDEX, find_away
from isvc.toolkit.cache import OWNER, Reader
from isvc.wire.bounded import Bounded

POD_INDEX: Final = "llm service"
OPTIONAL: Final = (
    HTTP_ROUTES,
    GATEWAYS,
    GATEWAY_CLASSES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
    RESOURCE_CLAIM_TEMPLATES,
)
_MERGES_KEPT: Final = 1000


class Observer:
    """Observes services through a reader; what is merged stays merged while nothing that went into it changes."""

    def __init__(self, reader: Reader, environment: Environment) -> None:
        self._reader, self._environment = reader, environment
        self._system_namespace = environment.system_namespace
        self._configuration = Configuration(reader, environment.system_namespace)
        self._merges: Bounded[Key, tuple[object, Merged]] = Bounded(_MERGES_KEPT)
        self._checked: WeakSet[Merged] = WeakSet()

    def observe(self, raw: Object, answers: Answers, now: str) -> Observed:
        config = self._configuration.required(is_new=not raw.get("status"))
        reader, environment = self._reader, self._environment
        combination, merged = self._combine(raw, config, answers)
        settings, sources = Settings.of(config, self._system_namespace), self._sources(answers)
        observed = partial(
            Observed,
            raw,
            merged,
            config,
            settings,
            combination,
            pins(raw.get("status") or {}, sources),
            environment=environment,
            answers=answers,
            now=now,
        )
        if not combination.is_planned:
            return observed()
        served = frozenset(resource for resource in OPTIONAL if reader.serves(resource))
        network = observe_network(reader, merged, raw)
        storage = config.storage_initializer
        bundle = storage.ca_bundle_config_map_name
        bindings = self.bindings_of(raw)
        return observed(
            live=dict(self._children(raw, served)),
            bindings=bindings,
            binding_name=self._binding_name(raw, bindings) if environment.cluster_wide else "",
            network=replace(network, wildcard_label=environment.wildcard_label),
            pods=reader.by_index(PODS, POD_INDEX, str(Key.of(raw))),
            served=served,
            ca_bundle=reader.get(CONFIG_MAPS, bundle, self._system_namespace) if bundle else None,
            accounts=lambda name: reader.get(SERVICE_ACCOUNTS, name, namespace_of(raw)),
            server_version=answers[ServerVersion()] if storage.oci_mode == "native" else None,
            away=find_away(lambda scaler: reader.by_index(ENDPOINT_SLICES, INDEX, scaler)),
            is_reread=self._is_unwatched(merged.scheduler_config_map),
        )

    def config(self, namespace: str, name: str) -> Object | None:
        return self._reader.get(LLM_INFERENCE_SERVICE_CONFIGS, name, namespace)

    def bindings_of(self, raw: Object) -> list[Object]:
        """Returns the service's ClusterRoleBindings: of their names there may be another service's, too."""
        if not self._environment.cluster_wide:
            return []
        own = names.scheduler_cluster_role_bindings(namespace_of(raw), name_of(raw))
        found = (self._reader.get(CLUSTER_ROLE_BINDINGS, name) for name in own)
        return [live for live in found if live is not None and _binds(live, raw)]

    def _binding_name(self, raw: Object, bindings: Sequence[Object]) -> str:
        """Returns the binding that is there, or the name that nobody else has."""
        if bindings:
            return name_of(bindings[0])
        plain, unambiguous = names.scheduler_cluster_role_bindings(namespace_of(raw), name_of(raw))
        return plain if self._reader.get(CLUSTER_ROLE_BINDINGS, plain) is None else unambiguous

    # -- configurations ---------------------------------------------------------------------------------------------

    def _combine(self, raw: Object, config: Config, answers: Answers) -> tuple[Combination, Merged]:
        """A service that is stopped needs no configurations to stay so."""
        merged, status = Merged.of({}), FALSE
        try:
            merged = self._merge(raw, config, answers)
            refused = self._refusal(raw, merged, answers)
            if refused is None:
                return Combination(applied=merged.applied), merged
            error: str = refusal(refused, merged)
            reason = "InvalidRenderedConfig"
            if not isinstance(refused, Invalid | BadRequest):  # a webhook calls malformed what the schema calls invalid
                status, reason = UNKNOWN, "ValidationUnavailable"
        except NotCombined as problem:
            error, reason = problem.message, problem.reason
        if is_stopped(raw):
            warning = f"Service is stopped with warning: {error}"
            return Combination(FALSE, "Stopped", warning, applied=None), Merged.of(raw.get("spec") or {})
        return Combination(status, reason, error, merged.applied, is_planned=False), merged

    def _refusal(self, raw: Object, merged: Merged, answers: Answers) -> ApiError | None:
        """Returns what the API server says to a merged spec, unless it is known to have nothing against it."""
        if merged in self._checked:
            return None
        error = None if was_good(raw, merged) else answers[ask_about(raw, merged)]
        if error is None:
            self._checked.add(merged)
        return error

    def _merge(self, raw: Object, config: Config, answers: Answers) -> Merged:
        """Raises `NotCombined`, `DecodeError` for the service's own spec, and `Needs` for a ConfigMap."""
        settings, sources = Settings.of(config, self._system_namespace), self._sources(answers)
        key = Key.of(raw)
        known = self._merges.get(key)
        if known is not None and known[0] == self._ingredients(raw, settings, known[1], sources):
            return known[1]
        spec: Object = deep_copy(raw.get("spec") or {})
        LLMInferenceService.decode({"metadata": raw["metadata"], "spec": spec})
        set_llm_defaults(spec)  # it may have been stored past the webhook
        merged = combine({**raw, "spec": spec}, settings, sources)
        self._merges[key] = self._ingredients(raw, settings, merged, sources), merged
        return merged

    def _ingredients(self, raw: Object, settings: Settings, merged: Merged, sources: Sources) -> object:
        """Returns what a merge was made of: equal ingredients give an equal merge."""
        metadata = raw["metadata"]
        places = (namespace_of(raw), self._system_namespace)
        looked_for = (*(applied.name for applied in merged.applied), *merged.lacking)
        configs = [_edition(self.config(place, name)) for name in looked_for for place in places]
        scheduler = merged.scheduler_config_map
        config_map = scheduler and sources.config_map(scheduler.namespace, scheduler.name)
        return (
            uid_of(raw),
            metadata.get("generation"),
            metadata.get("labels"),
            metadata.get("annotations"),
            pins(raw.get("status") or {}, sources),
            settings,
            configs,
            config_map and config_map.get("data"),
        )

    def _sources(self, answers: Answers) -> Sources:
        def config_map(namespace: str, name: str) -> Object | None:
            """Reads afresh unless it is watched: it is often edited together with the service that refers to it."""
            known = self._reader.get(CONFIG_MAPS, name, namespace)
            if known is not None or namespace == self._system_namespace:
                return known
            return answers[Stored(CONFIG_MAPS, name, namespace)]

        chosen = self._environment
        return Sources(self.config, config_map, self._system_namespace, chosen.preset_prefix, chosen.pin_presets)

    def _is_unwatched(self, config_map: Key | None) -> bool:
        return config_map is not None and self._reader.get(CONFIG_MAPS, config_map.name, config_map.namespace) is None

    def _children(self, raw: Object, served: frozenset[Resource]) -> Iterator[tuple[tuple[Resource, str], Object]]:
        for resource in CHILDREN:
            if resource in OPTIONAL and resource not in served:
                continue
            for child in self._reader.by_index(resource, OWNER, uid_of(raw)):
                yield (resource, name_of(child)), child


def _binds(binding: Object, service: Object) -> bool:
    """Returns whether a binding is for the service's scheduler: its label has the name, its subject the namespace."""
    namespaces = {subject.get("namespace") for subject in binding.get("subjects") or ()}
    return labels_of(binding).get(NAME) == name_of(service) and namespaces == {namespace_of(service)}


def _edition(config: Object | None) -> tuple[str, int] | None:
    """Returns what changes with the spec of an object, and not with its status."""
    return (uid_of(config), generation_of(config)) if config else None


def service_of_pod(pod: Object) -> Iterable[Key]:
    given = labels_of(pod)
    if name := given.get(SERVICE) or given.get(NAME):
        yield Key(namespace_of(pod), name)
