"""RuntimeClass: what running in a pod's runtime class costs, and where that is possible."""

from __future__ import annotations

from isvc.apiserver.admission.plugins.amounts import amounts
from isvc.apiserver.admission.plugins.plugin import Plugin, forbidden
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object, dig

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNDEFINED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    resources = ("pods",)

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        found = self._class_of(request, obj)
        if not found:
            return
        spec, overhead = obj["spec"], dig(found, "overhead", "podFixed")
        if overhead:
            if spec.get("overhead") and amounts(spec["overhead"]) != amounts(overhead):
                raise forbidden(request, obj, _MISMATCH)
            spec["overhead"] = overhead
        if scheduling := found.get("scheduling"):
            _schedule(request, obj, scheduling)

    def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        found = self._class_of(request, obj)
        if obj is None or found is None:
            return
        overhead = dig(found, "overhead", "podFixed")
        given = obj["spec"].get("overhead")
        if overhead and amounts(given) != amounts(overhead):
            raise forbidden(request, obj, _MISMATCH)
        if given and not overhead:
            raise forbidden(request, obj, _UNDEFINED)

    def _class_of(self, request: AdmissionRequest, pod: Object | None) -> Object | None:
        """Returns the pod's class, empty when it names none; None for requests that are not about new pods."""
        if pod is None or request.operation != "CREATE" or request.subresource:
            return None
        name = pod["spec"].get("runtimeClassName")
        if not name:
            return {}
        found = self.reader.get("runtimeclasses.node.k8s.io", name)
        if found is None:
            raise forbidden(request, pod, f'pod rejected: RuntimeClass "{name}" not found')
        return found


def _schedule(request: AdmissionRequest, pod: Object, scheduling: Object) -> None:
    spec = pod["spec"]
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        if selector.get(key, value) != value:
            ours = f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            theirs = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            raise forbidden(request, pod, f"conflict: {theirs}; {ours}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if tolerations:
        spec["tolerations"] = tolerations
