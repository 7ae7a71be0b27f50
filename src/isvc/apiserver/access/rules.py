"""One rule of a role: which requests it allows, and whether it covers another rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from isvc.apiserver.access.attributes import Attributes
from isvc.kube.objects import Object


def allows(rule: Object, wanted: Attributes) -> bool:
    if not _has(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_is_path(each, wanted.path) for each in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), wanted.group)
        and _has_resource(rule.get("resources") or (), wanted)
        and (not names or wanted.name in names)
    )


def not_covered(wanted: Iterable[Object], held: list[Object]) -> list[Object]:
    """Returns the smallest parts of the wanted rules that the held ones do not allow."""
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(each, part) for each in held)]


def _has(values: list[str] | None, value: str) -> bool:
    return bool(values) and ("*" in values or value in values)  # type: ignore[operator]


def _has_resource(resources: Iterable[str], wanted: Attributes) -> bool:
    return any(
        each in ("*", wanted.full_resource) or (wanted.subresource and each == f"*/{wanted.subresource}")
        for each in resources
    )


def _is_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def _parts(rule: Object) -> Iterator[Object]:
    """Yields a rule as rules of one verb, group, resource and name each."""
    for verb in rule.get("verbs") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield {"verbs": [verb], "nonResourceURLs": [url]}
        names = rule.get("resourceNames") or [None]
        for group, resource, name in product(rule.get("apiGroups") or (), rule.get("resources") or (), names):
            part: Object = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
            yield {**part, "resourceNames": [name]} if name else part


def _covers(rule: Object, part: Object) -> bool:
    if not _has(rule.get("verbs"), part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        return any(_is_path(each, part["nonResourceURLs"][0]) for each in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    resource, _, subresource = part["resources"][0].partition("/")
    wanted = Attributes(part["verbs"][0], resource=resource, subresource=subresource)
    return (
        _has(rule.get("apiGroups"), part["apiGroups"][0])
        and _has_resource(rule.get("resources") or (), wanted)
        and (not names or (part.get("resourceNames") or [None])[0] in names)
    )
