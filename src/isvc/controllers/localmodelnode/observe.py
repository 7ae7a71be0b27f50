"""Reads what the downloads of a node are planned from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from isvc.api.localmodel import LocalModelInfo, LocalModelNode, LocalModelNodeGroup
from isvc.api.model_downloads import ModelDownload, decode_downloads
from isvc.api.resources import (
    CLUSTER_STORAGE_CONTAINERS,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
)
from isvc.controllers.localmodelnode.disk import Stock
from isvc.controllers.localmodelnode.downloads import Download, downloads_of, keys_in_use
from isvc.engine import kind as engine
from isvc.engine.kind import Wait
from isvc.engine.needs import Answers, Stored
from isvc.kube.objects import Object, dig, uid_of
from isvc.kube.quantity import Quantity, QuantityError
from isvc.kube.resource import JOBS, PODS
from isvc.serving.config import Config
from isvc.serving.config.current import RETRY, Configuration
from isvc.serving.environment import Environment, ModelNode
from isvc.serving.storage.uris import storage_key
from isvc.toolkit.cache import OWNER, Reader

_CACHE_AGE = 60.0  # seconds for which the size that a cache announces will do


@dataclass(frozen=True)
class Observed(engine.Observed):
    """A node's list of models, what is on its disk, and the Jobs that bring the rest."""

    models: tuple[LocalModelInfo, ...]
    config: Config
    groups: Mapping[str, LocalModelNodeGroup]
    storage_containers: list[Object]
    downloads: tuple[Download, ...]
    in_use: frozenset[str]
    stock: Stock
    place: ModelNode

    @cached_property
    def by_key(self) -> Mapping[str, LocalModelInfo]:
        """The models by folder. Of several caches with one source the first says how it is downloaded."""
        return {storage_key(model.source_model_uri): model for model in reversed(self.models)}

    @cached_property
    def recorded(self) -> Mapping[str, ModelDownload]:
        """What was last written of each model, by the keys of its status."""
        return decode_downloads(self.raw)

    @cached_property
    def under_way(self) -> frozenset[str]:
        """The models that a Job is bringing."""
        return frozenset(each.key for each in self.downloads if each.is_under_way)

    def phase_before(self, model: LocalModelInfo) -> str:
        return str((self.status.get("modelStatus") or {}).get(model.status_key) or "")

    def group_of(self, model: LocalModelInfo) -> str:
        """Returns the group through which the node has the model; controllers of old did not say."""
        return model.node_group or (next(iter(self.groups)) if len(self.groups) == 1 else "")

    def limit_of(self, group: str) -> int | None:
        """Returns the bytes that models of the group may take on this node."""
        return None if group not in self.groups else to_bytes(self.groups[group].spec.storage_limit)

    def announced_size(self, model: LocalModelInfo) -> int | None:
        """Returns how large its cache says that the model is."""
        cache = self.answers[_cache_of(model)]
        return None if cache is None else to_bytes(dig(cache, "spec", "modelSize"))


class Observer:
    def __init__(self, reader: Reader, environment: Environment, stock: Callable[[], Stock]) -> None:
        self._reader, self._place, self._stock = reader, environment.node, stock
        self._configuration = Configuration(reader, environment.system_namespace)

    def observe(self, raw: Object, answers: Answers, now: str) -> Observed:
        config, reader, place = self._configuration.required(), self._reader, self._place
        if config.local_model.job_namespace not in ("", place.job_namespace):
            written = config.local_model.job_namespace
            raise Wait(f"localModel.jobNamespace is {written} now: restart this program to follow", RETRY)
        node = LocalModelNode.decode(raw)
        groups = [LocalModelNodeGroup.decode(group) for group in reader.list(LOCAL_MODEL_NODE_GROUPS)]
        pods = reader.list(PODS, place.job_namespace)
        observed = Observed(
            raw,
            models=tuple(node.spec.local_models),
            config=config,
            groups={group.metadata.name: group for group in groups},
            storage_containers=reader.list(CLUSTER_STORAGE_CONTAINERS),
            downloads=downloads_of(reader.by_index(JOBS, OWNER, uid_of(raw)), pods),
            in_use=keys_in_use(pods),
            stock=self._stock(),
            place=place,
            answers=answers,
            now=now,
        )
        lacking = (model for key, model in observed.by_key.items() if key not in observed.stock.complete)
        answers.expect(*map(_cache_of, lacking))
        return observed


def _cache_of(model: LocalModelInfo) -> Stored:
    kind = LOCAL_MODEL_NAMESPACE_CACHES if model.namespace else LOCAL_MODEL_CACHES
    return Stored(kind, model.model_name, model.namespace, max_age=_CACHE_AGE)


def to_bytes(written: object) -> int | None:
    """Returns a quantity in bytes; None for one that is none."""
    try:
        return Quantity.parse(str(written)).value() if written else None
    except QuantityError:
        return None
