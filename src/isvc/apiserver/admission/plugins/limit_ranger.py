"""LimitRanger: the defaults and bounds that a namespace's LimitRanges set for containers, pods and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from isvc.apiserver.admission.plugins.amounts import Amounts, amounts, pod_amounts
from isvc.apiserver.admission.plugins.plugin import Plugin, forbidden
from isvc.apiserver.refusals import join_reasons
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object, annotations_of, dig, is_being_deleted
from isvc.kube.quantity import Quantity

_NOTE = "kubernetes.io/limit-ranger"
_Bound = Callable[[str, Quantity, Quantity | None, Quantity | None], str | None]


class LimitRanger(Plugin):
    resources = ("pods", "persistentvolumeclaims")

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        if request.description.collection == "pods" and _concerns(request, old):
            for item in self._items(request.namespace):
                if item.get("type") == "Container":
                    _fill_in(obj, item)

    def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        if obj is None or not _concerns(request, old):
            return
        pod = request.description.collection == "pods"
        complaints = _pod_complaints if pod else _claim_complaints
        if found := [why for item in self._items(request.namespace) for why in complaints(item, obj["spec"])]:
            raise forbidden(request, obj, join_reasons(found))

    def _items(self, namespace: str) -> list[Object]:
        ranges = self.reader.list("limitranges", namespace)
        return [item for each in ranges for item in dig(each, "spec", "limits") or ()]


def _concerns(request: AdmissionRequest, old: Object | None) -> bool:
    if request.operation == "DELETE" or (old is not None and is_being_deleted(old)):
        return False
    if request.description.collection == "pods" and request.operation == "UPDATE":
        return request.subresource == "resize"
    return not request.subresource


def _fill_in(pod: Object, item: Object) -> None:
    """Gives containers the requests and limits that they do not state, and notes that in an annotation."""
    notes = []
    for title, field in (("container", "containers"), ("init container", "initContainers")):
        for container in pod["spec"].get(field) or ():
            for what, defaults in (("request", item.get("defaultRequest")), ("limit", item.get("default"))):
                stated = dig(container, "resources", f"{what}s") or {}
                added: Mapping[str, str] = {k: v for k, v in (defaults or {}).items() if k not in stated}
                if added:
                    container.setdefault("resources", {})[f"{what}s"] = {**stated, **added}
                    notes.append(f"{', '.join(sorted(added))} {what} for {title} {container['name']}")
    if notes:
        annotations = annotations_of(pod)
        pod["metadata"]["annotations"] = {**annotations, _NOTE: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _claim_complaints(item: Object, spec: Object) -> Iterator[str]:
    if item.get("type") != "PersistentVolumeClaim":
        return
    requests = amounts(dig(spec, "resources", "requests"))
    yield from _complaints(item, "min", _at_least, requests, {})
    yield from _complaints(item, "max", _request_at_most, requests, {})


def _pod_complaints(item: Object, spec: Object) -> Iterator[str]:
    for requests, limits in _amounts_of(item.get("type", ""), spec):
        yield from _complaints(item, "min", _at_least, requests, limits)
        yield from _complaints(item, "max", _at_most, requests, limits)
        yield from _complaints(item, "maxLimitRequestRatio", _in_proportion, requests, limits)


def _amounts_of(kind: str, spec: Object) -> Iterator[tuple[Amounts, Amounts]]:
    """Yields the requests and limits of whatever the item is about."""
    if kind == "Container":
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            yield amounts(dig(container, "resources", "requests")), amounts(dig(container, "resources", "limits"))
    elif kind == "Pod":
        yield pod_amounts(spec, "requests"), pod_amounts(spec, "limits")


def _complaints(item: Object, field: str, bound: _Bound, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, enforced in sorted(amounts(item.get(field)).items()):
        title = f"{name} {{}} per {item['type']} is {enforced}"
        if why := bound(title, enforced, requests.get(name), limits.get(name)):
            yield why


def _at_least(title: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None) -> str | None:
    title = f"minimum {title.format('usage')}"
    if request is None:
        return f"{title}.  No request is specified"
    if request < enforced:
        return f"{title}, but request is {request}"
    return f"{title}, but limit is {limit}" if limit is not None and limit < enforced else None


def _at_most(title: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None) -> str | None:
    title = f"maximum {title.format('usage')}"
    if limit is None:
        return f"{title}.  No limit is specified"
    if limit > enforced:
        return f"{title}, but limit is {limit}"
    return f"{title}, but request is {request}" if request is not None and request > enforced else None


def _request_at_most(title: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None) -> str | None:
    title = f"maximum {title.format('usage')}"
    if request is None:
        return f"{title}.  No request is specified"
    return f"{title}, but request is {request}" if request > enforced else None


def _in_proportion(title: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None) -> str | None:
    title = title.format("max limit to request ratio")
    if not request:
        return f"{title}, but no request is specified or request is 0"
    if not limit:
        return f"{title}, but no limit is specified or limit is 0"
    ratio = limit.nanos / request.nanos
    return f"{title}, but provided ratio is {ratio:f}" if ratio > float(enforced) else None
