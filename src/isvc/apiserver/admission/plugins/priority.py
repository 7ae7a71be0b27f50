"""Priority: the number and the preemption policy that a pod's PriorityClass stands for."""

from __future__ import annotations

from isvc.apiserver.admission.plugins.plugin import Plugin, forbidden
from isvc.apiserver.reader import Reader
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object

_CLASSES = "priorityclasses.scheduling.k8s.io"
_NO_CLASS: Object = {"metadata": {"name": ""}, "value": 0, "preemptionPolicy": "PreemptLowerPriority"}
_NOT_GIVEN = "must not be provided in pod spec"
_BY_CLASS = "priority admission controller computed {} from the given PriorityClass name"


class Priority(Plugin):
    resources = ("pods", _CLASSES)

    def __init__(self, reader: Reader, controllers: bool = False) -> None:
        super().__init__(reader, controllers)
        self._known: tuple[int, Object | None] = (-1, None)

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        if request.subresource or request.description.collection != "pods":
            return
        if old is None:
            self._give(request, obj)
            return
        for field in ("priority", "preemptionPolicy"):
            if field in old["spec"]:
                obj["spec"].setdefault(field, old["spec"][field])

    def _give(self, request: AdmissionRequest, pod: Object) -> None:
        spec, name = pod["spec"], pod["spec"].get("priorityClassName")
        found = self.reader.get(_CLASSES, name) if name else self._default() or _NO_CLASS
        if found is None:
            raise forbidden(request, pod, f"no PriorityClass with name {name} was found")
        value, policy = found["value"], found.get("preemptionPolicy") or ""
        if spec.get("priority", value) != value:
            words = f"the integer value of priority ({spec['priority']})"
            raise forbidden(request, pod, f"{words} {_NOT_GIVEN}; {_BY_CLASS.format(value)}")
        spec["priority"] = value
        if found["metadata"]["name"]:
            spec["priorityClassName"] = found["metadata"]["name"]
        if not policy:
            return
        if spec.get("preemptionPolicy", policy) != policy:
            words = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']})"
            raise forbidden(request, pod, f"{words} {_NOT_GIVEN}; {_BY_CLASS.format(policy)}")
        spec["preemptionPolicy"] = policy

    def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        if obj is None or request.description.collection != _CLASSES or not obj.get("globalDefault"):
            return
        default = self._default()
        if default and (old is None or default["metadata"]["name"] != obj["metadata"]["name"]):
            words = f"PriorityClass {default['metadata']['name']} is already marked as default."
            raise forbidden(request, obj, f"{words} Only one default can exist")

    def _default(self) -> Object | None:
        """Returns the class of pods that name none; looked for anew when classes changed."""
        revision = self.reader.revision(_CLASSES)
        if self._known[0] != revision:
            defaults = [each for each in self.reader.list(_CLASSES) if each.get("globalDefault")]
            self._known = revision, min(defaults, key=lambda each: int(each["value"]), default=None)
        return self._known[1]
