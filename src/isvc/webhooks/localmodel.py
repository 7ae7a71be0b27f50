"""Admission of model caches, and of their deletion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from isvc.api import LocalModelCache
from isvc.api.resources import (
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
)
from isvc.api.validation import Verdict
from isvc.api.validation.localmodel import validate_cache, validate_deletion, validate_namespace_cache
from isvc.kube.objects import Object, name_of
from isvc.toolkit.cache import Reader
from isvc.toolkit.reads import Read
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse
from isvc.webhooks.answers import Handler, answer, refusing_malformed

USERS: Final = (
    Read(INFERENCE_SERVICES, metadata_only=True),
    Read(LLM_INFERENCE_SERVICES, metadata_only=True, optional=True),
)
READS: Final = (*USERS, Read(LOCAL_MODEL_CACHES, optional=True))
NAMESPACE_READS: Final = (*USERS, Read(LOCAL_MODEL_NODE_GROUPS, optional=True))


NOT_FOUND: Final = 404  # as KServe answers of a group of nodes that does not exist


def cache_validator(reader: Reader) -> Handler:
    def judge(request: AdmissionRequest) -> Verdict:
        return validate_cache(request.object, reader.list(LOCAL_MODEL_CACHES), request.old_object or None)

    return _validator(reader, judge)


def namespace_cache_validator(reader: Reader) -> Handler:
    def judge(request: AdmissionRequest) -> Verdict:
        groups = map(name_of, reader.list(LOCAL_MODEL_NODE_GROUPS))
        return validate_namespace_cache(request.object, groups, request.old_object or None)

    return _validator(reader, judge, NOT_FOUND)


def _validator(reader: Reader, judge: Callable[[AdmissionRequest], Verdict], code: int = 403) -> Handler:
    """A cache that a service uses cannot be deleted: the service's pods would lose their model."""

    def validate(request: AdmissionRequest) -> AdmissionResponse:
        if request.operation == "DELETE":
            return answer(request, validate_deletion(request.old_object, _users(reader, request.old_object)))
        return answer(request, judge(request), code)

    return refusing_malformed(validate)


def _users(reader: Reader, cache: Object) -> Iterator[Object]:
    status = LocalModelCache.decode(cache).status
    for resource, users in (
        (INFERENCE_SERVICES, status.inference_services),
        (LLM_INFERENCE_SERVICES, status.llm_inference_services),
    ):
        for user in users if reader.serves(resource) else ():
            if (service := reader.get(resource, user.name, user.namespace)) is not None:
                yield service
