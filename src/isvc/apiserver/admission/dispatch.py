"""What a write passes before it is stored: plugins, which this server has built in, and users' policies and webhooks.

Plugins see an object first. Mutating webhooks are called one after another, sorted by configuration; those that asked
for it are called again when a later one changed the object, as are the plugins. Validating webhooks are called side by
side, and the first refusal counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from isvc.apiserver.admission.caller import Caller, CallFailed
from isvc.apiserver.admission.hooks import DEFINITIONS, OWN_GROUP, Hook, in_version, wanted_version
from isvc.apiserver.admission.plugins import Plugin
from isvc.apiserver.admission.policies import Policies
from isvc.apiserver.admission.quota import ResourceQuota
from isvc.apiserver.admission.review import patch_in, refusal, response_in, review_of
from isvc.apiserver.cel import CelError
from isvc.apiserver.reader import Reader
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.errors import BadRequest, InternalError
from isvc.kube.objects import Object, deep_copy
from isvc.kube.patch import PatchError, json_patch
from isvc.kube.resource import Resource

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"


class _Match(NamedTuple):
    hook: Hook
    resource: Resource  # the version in which the webhook wants to see objects


class Admission:
    def __init__(
        self,
        reader: Reader,
        caller: Caller | None = None,
        plugins: Sequence[Plugin] = (),
        policies: Policies | None = None,
        quota: ResourceQuota | None = None,
    ) -> None:
        self.reader = reader
        self.caller = caller or Caller(reader)
        self._policies = policies
        self._quota = quota
        self._plugins: dict[str, list[Plugin]] = {}
        for plugin in plugins:
            for resource in plugin.resources:
                self._plugins.setdefault(resource, []).append(plugin)
        self._revision: tuple[int, ...] = ()
        self._hooks: dict[str, list[Hook]] = {}
        self._matches: dict[tuple[str, Resource, str, str], list[_Match]] = {}

    async def mutate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> Object | None:
        """Returns the object as plugins and mutating webhooks leave it."""
        self._admit(request, obj, old)
        matches = self._find_matches(MUTATING, request)
        if not matches:
            return obj
        before = obj
        called: set[str] = set()
        again: set[str] = set()
        for match in matches:
            obj, changed = await self._mutate_once(match, request, obj, old)
            if changed:
                again |= called
            if match.hook.reinvocable:
                called.add(match.hook.uid)
        for match in matches:
            if match.hook.uid in again:
                obj, _ = await self._mutate_once(match, request, obj, old)
        if obj is not before:
            self._admit(request, obj, old)
        return obj

    def _admit(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        if obj is not None:
            for plugin in self._plugins.get(request.description.collection, ()):
                plugin.admit(request, obj, old)

    async def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        """Raises the first refusal of a plugin, a policy, a validating webhook or a quota."""
        for plugin in self._plugins.get(request.description.collection, ()):
            plugin.validate(request, obj, old)
        if self._policies:
            await self._policies.validate(request, obj, old)
        if matches := self._find_matches(VALIDATING, request):
            asked = (self._ask(match, request, obj, old) for match in matches)
            for answer in await asyncio.gather(*asked, return_exceptions=True):
                if isinstance(answer, BaseException):
                    raise answer
        if self._quota:
            await self._quota.charge(request, obj, old)

    async def close(self) -> None:
        await self.caller.close()

    def _find_matches(self, collection: str, request: AdmissionRequest) -> Sequence[_Match]:
        """Returns the webhooks whose rules name the request; the same few questions are asked again and again."""
        revision = tuple(map(self.reader.revision, (MUTATING, VALIDATING, DEFINITIONS)))
        if revision != self._revision:
            self._revision, self._matches = revision, {}
            self._hooks = {each: self._read(each) for each in (MUTATING, VALIDATING)}
        if not self._hooks[collection]:
            return ()
        resource = request.description.resource
        key = (collection, resource, request.subresource, request.operation)
        if key not in self._matches:
            self._matches[key] = [] if resource.group == OWN_GROUP else self._match(*key)
        return self._matches[key]

    def _read(self, collection: str) -> list[Hook]:
        found = sorted(self.reader.list(collection), key=lambda each: str(each["metadata"]["name"]))
        return [
            Hook(configuration["metadata"]["name"], index, spec)
            for configuration in found
            for index, spec in enumerate(configuration.get("webhooks") or ())
        ]

    def _match(self, collection: str, resource: Resource, subresource: str, operation: str) -> list[_Match]:
        wanted = (
            (hook, wanted_version(self.reader, hook, resource, subresource, operation))
            for hook in self._hooks[collection]
        )
        return [_Match(hook, found) for hook, found in wanted if found]

    async def _mutate_once(
        self, match: _Match, request: AdmissionRequest, obj: Object | None, old: Object | None
    ) -> tuple[Object | None, bool]:
        asked = await self._ask(match, request, obj, old)
        if asked is None:
            return obj, False
        seen, response = asked
        try:
            patch = patch_in(response)
        except CallFailed as error:
            return self._fail_or_ignore(match.hook, error, obj), False
        if not patch:
            return obj, False
        if seen is None or obj is None:
            words = f'admission webhook "{match.hook.name}" attempted to modify the object'
            raise _internal(f"{words}, which is not supported for this operation")
        try:
            patched = json_patch.apply(seen, patch)
        except PatchError as error:
            raise _internal(str(error)) from None
        strategy = request.description.strategy
        [back] = await strategy.convert([patched], request.description.resource.api_version)
        result = strategy.decode(deep_copy(back), [])
        return result, result != obj

    async def _ask(
        self, match: _Match, request: AdmissionRequest, obj: Object | None, old: Object | None
    ) -> tuple[Object | None, Object] | None:
        """Returns the object that the webhook saw and its response; None when it was not asked, or failed and may."""
        hook = match.hook
        namespace = self.reader.get("namespaces", request.namespace or request.name) if hook.namespaces else None
        if not hook.wants_labels(obj, old) or not hook.wants_namespace(request, obj, namespace):
            return None
        seen, seen_old = await in_version(match.resource, request, obj, old)
        review = review_of(request, seen, seen_old, match.resource)
        if hook.spec.get("matchConditions") and not self._conditions_hold(hook, review):
            return None
        if request.dry_run and not hook.allows_dry_run:
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._call(hook, review)
        except CallFailed as error:
            self._fail_or_ignore(hook, error, None)
            return None
        request.warnings.extend(str(each) for each in answer.get("warnings") or ())
        if not answer.get("allowed"):
            raise refusal(hook.name, answer.get("result") or answer.get("status"))
        return seen, answer

    async def _call(self, hook: Hook, review: Object) -> Object:
        try:
            answer = await self.caller.post(hook.spec["clientConfig"], review, timeout=hook.timeout)
        except CallFailed as error:
            raise CallFailed(f"failed to call webhook: {error}") from None
        return response_in(answer, review["request"]["uid"])

    @staticmethod
    def _conditions_hold(hook: Hook, review: Object) -> bool:
        asked = review["request"]
        variables = {"object": asked["object"], "oldObject": asked["oldObject"], "request": asked}
        try:
            return hook.wants_conditions(variables)
        except CelError as error:
            if hook.ignores_failure:
                return False
            raise _internal(str(error)) from None

    @staticmethod
    def _fail_or_ignore(hook: Hook, error: CallFailed, obj: Object | None) -> Object | None:
        """Raises for a call that did not work out, unless the webhook may fail."""
        if hook.ignores_failure:
            return obj
        raise _internal(f'failed calling webhook "{hook.name}": {error}') from None


def _internal(words: str) -> InternalError:
    return InternalError(f"Internal error occurred: {words}", details={"causes": [{"message": words}]})
