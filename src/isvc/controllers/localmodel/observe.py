"""Reads what a cache is planned from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from isvc.api.completion import read
from isvc.api.localmodel import MODEL_STATES, LocalModelCache, LocalModelCacheSpec
from isvc.api.resources import (
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.controllers.localmodel.node_groups import Group, NodeGroups
from isvc.controllers.localmodel.volumes import is_bound_for, names_of_volumes
from isvc.engine import kind as engine
from isvc.engine.needs import Answers
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Resource
from isvc.serving.config.current import Configuration
from isvc.serving.config.sections import LocalModelConfig
from isvc.serving.environment import Environment
from isvc.toolkit.cache import OWNER, Reader

BY_MODEL: Final = "lists by model"
BY_STATE: Final = "lists by state of a model"
BY_CACHE: Final = "users by cache"
BY_VOLUME: Final = "caches by name of a volume"


@dataclass(frozen=True)
class Observed(engine.Observed):
    """A cache, its groups of nodes, and what there is of it.

    `groups`    by name, in the order in which the cache names them; None for one that does not exist
    `lists`     the nodes that have a list of models
    `entered`   those of them whose list has the model
    `states`    how far each node is with it
    `services`  InferenceServices that use the cache, `llm_services` LLMInferenceServices, as far as their metadata goes
    `volumes`   PersistentVolumes that belong to it, by name
    `claims`    PersistentVolumeClaims that belong to it
    """

    spec: LocalModelCacheSpec
    config: LocalModelConfig
    groups: Mapping[str, Group | None]
    lists: frozenset[str]
    entered: frozenset[str]
    states: Mapping[str, str]
    services: tuple[Object, ...]
    llm_services: tuple[Object, ...]
    volumes: Mapping[str, Object]
    claims: Mapping[Key, Object]

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def missing_groups(self) -> list[str]:
        return [name for name, group in self.groups.items() if group is None]

    @property
    def nodes(self) -> dict[str, bool]:
        """The nodes of all groups, each with whether it is ready."""
        return {node: ready for group in self.groups.values() if group for node, ready in group.nodes.items()}


class Observer:
    def __init__(self, reader: Reader, environment: Environment) -> None:
        self._reader = reader
        self._node_groups = NodeGroups(reader)
        self._configuration = Configuration(reader, environment.system_namespace)

    def observe(self, raw: Object, answers: Answers, now: str) -> Observed:
        reader, config, key = self._reader, self._configuration.required().local_model, Key.of(raw)
        raw, cache = read(LocalModelCache, raw)
        model = str(key)
        return Observed(
            raw,
            spec=cache.spec,
            config=config,
            groups={name: self._node_groups.get(name) for name in cache.spec.node_groups},
            lists=frozenset(found.name for found in reader.all_keys(LOCAL_MODEL_NODES)),
            entered=self.nodes_with_model(raw),
            states={
                found.name: state
                for state in MODEL_STATES
                for found in reader.keys(LOCAL_MODEL_NODES, BY_STATE, f"{model}={state}")
            },
            services=self._users(INFERENCE_SERVICES, model),
            llm_services=self._users(LLM_INFERENCE_SERVICES, model),
            volumes=self.volumes(raw),
            claims=self.claims(raw),
            answers=answers,
            now=now,
        )

    def nodes_with_model(self, raw: Object) -> frozenset[str]:
        """Returns the nodes whose list has the model of a cache."""
        return frozenset(found.name for found in self._reader.keys(LOCAL_MODEL_NODES, BY_MODEL, str(Key.of(raw))))

    def volumes(self, raw: Object) -> dict[str, Object]:
        """Returns the volumes of a cache: those that it owns, or in a namespace those that are called after it."""
        cache = Key.of(raw)
        if not cache.namespace:
            found = self._reader.by_index(PERSISTENT_VOLUMES, OWNER, uid_of(raw))
        else:
            named, jobs = self._called_after(raw, PERSISTENT_VOLUMES), self._job_namespace
            found = [each for each in named if is_bound_for(cache, each, jobs)]
        return {name_of(volume): volume for volume in found}

    def claims(self, raw: Object) -> dict[Key, Object]:
        """Returns the claims of a cache: those that it owns, and where the jobs are those that are called after it."""
        found = self._reader.by_index(PERSISTENT_VOLUME_CLAIMS, OWNER, uid_of(raw))
        if namespace_of(raw):
            named = self._called_after(raw, PERSISTENT_VOLUME_CLAIMS, self._job_namespace)
            found += [claim for claim in named if dig(claim, "spec", "volumeName") == name_of(claim)]
        return {Key.of(claim): claim for claim in found}

    @property
    def _job_namespace(self) -> str:
        """The namespace of the jobs; unknown without a configuration, which no deletion waits for."""
        config = self._configuration.in_force()
        return config.local_model.job_namespace if config else ""

    def _called_after(self, raw: Object, resource: Resource, namespace: str = "") -> Iterator[Object]:
        """Yields what has no owner and is called as volumes of this cache are, and not as those of another.

        Who writes a cache chooses its name, and must not choose by it what of others is deleted.
        """
        cache, reader = Key.of(raw), self._reader
        groups = {*groups_of(raw), *(each.name for each in reader.all_keys(LOCAL_MODEL_NODE_GROUPS))}
        for name in sorted(names_of_volumes(cache, groups)):
            takers = reader.keys(LOCAL_MODEL_NAMESPACE_CACHES, BY_VOLUME, name)
            live = reader.get(resource, name, namespace)
            if live is not None and controller_of(live) is None and all(taker == cache for taker in takers):
                yield live

    def _users(self, resource: Resource, model: str) -> tuple[Object, ...]:
        if not self._reader.serves(resource):
            return ()
        return tuple(sorted(self._reader.by_index(resource, BY_CACHE, model), key=Key.of))


def groups_of(cache: Object) -> list[str]:
    """Returns the groups that a cache names, which may have been stored past the schema."""
    groups = dig(cache, "spec", "nodeGroups")
    return [*map(str, groups)] if isinstance(groups, list) else []
