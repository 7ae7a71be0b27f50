"""The version in which a webhook or a policy wants to see objects, and the objects in that version."""

from __future__ import annotations

from isvc.apiserver.admission.hooks import Hook
from isvc.apiserver.admission.reader import Reader
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object
from isvc.kube.resource import Resource

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def wanted_version(
    reader: Reader, hook: Hook, resource: Resource, subresource: str, operation: str, name: str | None = None
) -> Resource | None:
    """The resource itself or another served version of it that the rules name; None when they name neither."""
    candidates = [resource, *(_equivalents(reader, resource) if hook.equivalent else ())]
    return next((each for each in candidates if hook.matches_rules(each, subresource, operation, name)), None)


async def in_version(
    resource: Resource, request: AdmissionRequest, obj: Object | None, old: Object | None
) -> tuple[Object | None, Object | None]:
    if resource == request.description.resource:
        return obj, old
    present = [each for each in (obj, old) if each is not None]
    converted = iter(await request.description.strategy.convert(present, resource.api_version))
    return (None if obj is None else next(converted)), (None if old is None else next(converted))


def _equivalents(reader: Reader, resource: Resource) -> list[Resource]:
    """Other served versions of a custom resource."""
    crd = reader.get(DEFINITIONS, str(resource))
    versions = crd["spec"]["versions"] if crd else []
    others = [each["name"] for each in versions if each.get("served") and each["name"] != resource.version]
    return [resource._replace(version=each) for each in others]
