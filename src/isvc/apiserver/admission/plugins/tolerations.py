"""DefaultTolerationSeconds: pods stay for five minutes on a node that is not ready or not reachable."""

from __future__ import annotations

from isvc.apiserver.admission.plugins.plugin import Plugin
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object

_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(Plugin):
    resources = ("pods",)

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        if request.subresource:
            return
        given = obj["spec"].get("tolerations") or []
        missing = [taint for taint in _TAINTS if not any(_tolerates(each, taint) for each in given)]
        added = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        if missing:
            obj["spec"]["tolerations"] = [*given, *({"key": taint, **added} for taint in missing)]


def _tolerates(toleration: Object, taint: str) -> bool:
    return (toleration.get("key") or taint) == taint and (toleration.get("effect") or "NoExecute") == "NoExecute"
