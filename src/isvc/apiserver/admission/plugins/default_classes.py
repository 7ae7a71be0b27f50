"""DefaultStorageClass and DefaultIngressClass: the class that an object gets when it names none."""

from __future__ import annotations

from isvc.apiserver.admission.plugins.plugin import Plugin
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object, annotations_of

_BETA = "volume.beta.kubernetes.io/storage-class"


class DefaultStorageClass(Plugin):
    resources = ("persistentvolumeclaims",)

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        if request.operation != "CREATE" or request.subresource:
            return
        if "storageClassName" in obj["spec"] or _BETA in annotations_of(obj):
            return
        marks = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
        if default := _newest(self.reader.list("storageclasses.storage.k8s.io"), marks):
            obj["spec"]["storageClassName"] = default


class DefaultIngressClass(Plugin):
    resources = ("ingresses.networking.k8s.io",)

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        if request.operation != "CREATE" or request.subresource:
            return
        if "ingressClassName" in obj["spec"] or "kubernetes.io/ingress.class" in annotations_of(obj):
            return
        mark = ("ingressclass.kubernetes.io/is-default-class",)
        if default := _newest(self.reader.list("ingressclasses.networking.k8s.io"), mark):
            obj["spec"]["ingressClassName"] = default


def _newest(classes: list[Object], marks: tuple[str, ...]) -> str:
    """Returns the name of the class that is marked as the default; of several the one created last."""
    marked = [each for each in classes if any(annotations_of(each).get(mark) == "true" for mark in marks)]
    marked.sort(key=lambda each: str(each["metadata"]["name"]))
    marked.sort(key=lambda each: str(each["metadata"]["creationTimestamp"]), reverse=True)
    return str(marked[0]["metadata"]["name"]) if marked else ""
