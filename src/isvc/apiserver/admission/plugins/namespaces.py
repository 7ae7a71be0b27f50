"""NamespaceLifecycle: the namespaces of the cluster itself are not deleted.

That nothing is created in a namespace that does not exist or is going away belongs to the create itself
(`verbs.pipeline.check_namespace`).
"""

from __future__ import annotations

from isvc.apiserver.admission.plugins.plugin import Plugin, forbidden
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object

_IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle(Plugin):
    resources = ("namespaces",)

    def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        if request.operation == "DELETE" and request.name in _IMMORTAL:
            raise forbidden(request, obj, "this namespace may not be deleted")
