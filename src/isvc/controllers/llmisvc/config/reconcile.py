"""Reconciling an LLMInferenceServiceConfig: its status names its users, and its finalizer waits for them."""

from __future__ import annotations

from typing import Final

from isvc.api import DecodeError
from isvc.api.llm.v1alpha2 import LLMInferenceServiceConfig
from isvc.api.resources import GROUP, LLM_INFERENCE_SERVICE_CONFIGS
from isvc.controllers.llmisvc.config.status import fold
from isvc.controllers.llmisvc.config.users import Users
from isvc.engine.commit import Commit
from isvc.kube.errors import BadRequest, Forbidden, Invalid
from isvc.kube.objects import Key, Object, finalizers_of, is_being_deleted, name_of, namespace_of
from isvc.kube.patch import merge_patch
from isvc.serving.events import WARNING
from isvc.serving.llm.spelling import spelled
from isvc.toolkit.cache import Memory
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, timestamp
from isvc.toolkit.controller import Result
from isvc.toolkit.recorder import EventRecorder

FINALIZER: Final = f"{GROUP}/llmisvcconfig-finalizer"
PAUSE: Final = 0.5  # between two looks at one configuration
PAUSE_PER_USER: Final = 0.1  # a preset has every service as its user: they come and go without end
LONGEST_PAUSE: Final = 30.0


class Reconciler:
    def __init__(self, client: Client, cache: Memory, recorder: EventRecorder, clock: Clock, users: Users) -> None:
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._users = users
        self._commit = Commit(client, cache)
        self._due: dict[Key, float] = {}

    async def reconcile(self, key: Key) -> Result | None:
        raw = self._cache.get(LLM_INFERENCE_SERVICE_CONFIGS, key.name, key.namespace)
        if raw is None:
            self._due.pop(key, None)
            return None
        if is_being_deleted(raw):
            await self._delete(raw, self._users.of(raw))
            return None
        if (pause := self._due.get(key, 0.0) - self._clock.monotonic()) > 0:
            return Result(requeue_after=pause)
        raw = await self._begin(raw)
        users = self._users.of(raw)
        await self._commit.status(LLM_INFERENCE_SERVICE_CONFIGS, raw, self._status(raw, users))
        self._due[key] = self._clock.monotonic() + min(PAUSE + PAUSE_PER_USER * len(users), LONGEST_PAUSE)
        return None

    async def _begin(self, raw: Object) -> Object:
        """The configuration with its finalizer; the write that adds it also spells the spec as Go would."""
        if FINALIZER in finalizers_of(raw):
            return raw
        finalizers, spec = [*finalizers_of(raw), FINALIZER], _spelling(raw.get("spec") or {})
        commit, resource = self._commit, LLM_INFERENCE_SERVICE_CONFIGS
        try:
            return await commit.metadata(resource, raw, finalizers=finalizers, spec=spec) or raw
        except (BadRequest, Forbidden, Invalid):  # by rules that are younger than the configuration
            return await commit.add_finalizer(resource, raw, FINALIZER)

    async def _delete(self, raw: Object, users: list[Key]) -> None:
        if FINALIZER not in finalizers_of(raw):
            return
        if not users:
            await self._commit.remove_finalizer(LLM_INFERENCE_SERVICE_CONFIGS, raw, FINALIZER)
            return
        blocked = self._status(raw, users, reason="DeletionBlocked")
        if await self._commit.status(LLM_INFERENCE_SERVICE_CONFIGS, raw, blocked):
            place = f"{namespace_of(raw)}/{name_of(raw)}"
            message = f"Cannot delete LLMInferenceServiceConfig {place}: used by {', '.join(map(str, users[:10]))}"
            self._recorder.event(raw, WARNING, "DeletionBlocked", message)

    def _status(self, raw: Object, users: list[Key], reason: str = "InUse") -> Object:
        return fold(raw, users, timestamp(self._clock.now()), reason)


def _spelling(spec: Object) -> Object:
    """The patch that spells a spec as Go would; none for one that is not of its types, which services will say."""
    try:
        change: Object = merge_patch.diff(spec, spelled(spec, LLMInferenceServiceConfig))
    except DecodeError:
        return {}
    return change
