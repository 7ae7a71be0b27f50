"""What an API server with our CRDs and webhooks makes of an object of ours: completed, converted, or refused.

The order is Kubernetes': the schema drops and defaults, webhooks mutate, the schema and its rules validate, webhooks
validate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache

from isvc.api.kinds import KINDS, KindRow
from isvc.api.kinds.crds import crd
from isvc.api.llm.conversion import convert
from isvc.api.resources import GROUP
from isvc.apiserver import refusals
from isvc.apiserver.crd.custom import Custom
from isvc.apiserver.objects import metadata
from isvc.kube.errors import ApiError, BadRequest, from_status
from isvc.kube.objects import GVK, Object, deep_copy, name_of, namespace_of
from isvc.kube.patch import json_patch
from isvc.kube.resource import Resource
from isvc.programs.cluster_manifests import PROGRAMS
from isvc.programs.registration import Action, AdmissionWebhook, WebhookContext
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse
from isvc.toolkit.webhook.admission import AdmissionHandler, refusal

WEBHOOKS = tuple(each for program in PROGRAMS for each in program.webhooks if isinstance(each, AdmissionWebhook))


class Admission:
    """`warn` is called with what `kubectl` would print as a warning."""

    def __init__(self, context: WebhookContext, warn: Callable[[str], None]) -> None:
        self._handlers = [(webhook, webhook.handler(context)) for webhook in WEBHOOKS]
        self._warn = warn

    async def admit(self, resource: Resource, new: Object, old: Object | None = None) -> Object:
        """Returns the object as it is stored; raises the `ApiError` that a client would get."""
        if resource.group != GROUP:
            return await self._ask(Action.MUTATE, resource, new, old)
        obj = _decode(resource, new, self._warn)
        if old is not None:
            old = _in_version(old, resource.api_version)
        obj = _decode(resource, await self._ask(Action.MUTATE, resource, obj, old), self._warn)
        _validate(resource, obj, old)
        await self._ask(Action.VALIDATE, resource, obj, old)
        return _in_version(obj, _row_of(resource).resource.api_version)

    async def _ask(self, action: Action, resource: Resource, obj: Object, old: Object | None) -> Object:
        operation = "CREATE" if old is None else "UPDATE"
        for webhook, handler in self._handlers:
            if webhook.action is action and webhook.resource == resource and operation in webhook.operations:
                answer = await _decide(handler, _request(resource, operation, obj, old))
                if not answer.allowed:
                    raise _refusal_of(webhook, answer)
                for warning in answer.warnings:
                    self._warn(warning)
                obj = json_patch.apply(obj, list(answer.patch)) if answer.patch else obj
        return obj


def check_types(resource: Resource, obj: Object) -> None:
    """Raises the `ApiError` for fields of a wrong type. What else is wrong, a webhook may still mend."""
    if resource.group != GROUP:
        _check_metadata(obj)
        return
    found = _strategy(resource).validate_create(_decode(resource, obj, lambda unknown: None))
    if wrong := [error for error in found if error.reason == "FieldValueTypeInvalid"]:
        raise refusals.invalid(resource.gvk, name_of(obj), wrong)


def _check_metadata(obj: Object) -> None:
    if complaint := metadata.check_types(obj):
        raise BadRequest(complaint)


def _decode(resource: Resource, obj: Object, warn: Callable[[str], None]) -> Object:
    _check_metadata(obj)
    unknown: list[str] = []
    decoded = _strategy(resource).decode(deep_copy(obj), unknown)
    for field in unknown:
        warn(f'unknown field "{field}"')
    return decoded


def _validate(resource: Resource, obj: Object, old: Object | None) -> None:
    strategy = _strategy(resource)
    errors = metadata.validate(obj, "subdomain", resource.namespaced)
    errors += strategy.validate_create(obj) if old is None else strategy.validate_update(obj, old, "")
    if errors:
        raise refusals.invalid(resource.gvk, name_of(obj), errors)


@cache
def _strategy(resource: Resource) -> Custom:
    made = crd(_row_of(resource), described=False)
    return Custom(made, next(each for each in made["spec"]["versions"] if each["name"] == resource.version), None)


def _row_of(resource: Resource) -> KindRow:
    """Returns the row of a kind, whatever its version."""
    return next(row for row in KINDS if str(row.resource) == str(resource))


def _in_version(obj: Object, api_version: str) -> Object:
    return obj if obj["apiVersion"] == api_version else convert([obj], api_version)[0]


def _request(resource: Resource, operation: str, obj: Object, old: Object | None) -> AdmissionRequest:
    return AdmissionRequest(
        uid="simulated",
        operation=operation,
        namespace=namespace_of(obj),
        name=name_of(obj),
        kind=GVK(resource.group, resource.version, resource.kind),
        object=obj,
        old_object=old or {},
        dry_run=False,
        user={},
    )


async def _decide(handler: AdmissionHandler, request: AdmissionRequest) -> AdmissionResponse:
    try:
        answer = handler(request)
        return await answer if inspect.isawaitable(answer) else answer
    except ApiError as error:
        return refusal(error)


def _refusal_of(webhook: AdmissionWebhook, answer: AdmissionResponse) -> ApiError:
    message = f'admission webhook "{webhook.name}" denied the request: {answer.message}'
    return from_status(answer.code, {"message": message})
