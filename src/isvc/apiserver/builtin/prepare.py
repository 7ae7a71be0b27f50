"""What only the server says about a new or changed object: a first status, generated selectors, protections.

In Kubernetes some of this comes from admission plugins that are always on (taints of new nodes, protection of volumes).
"""

from __future__ import annotations

from isvc.apiserver.objects.metadata import now
from isvc.kube.conditions import FALSE, set_condition
from isvc.kube.objects import Object, annotations_of, containers_of
from isvc.kube.quantity import Quantity

_NOT_READY = "node.kubernetes.io/not-ready"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def pod(obj: Object) -> None:
    spec = obj["spec"]
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        why = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
        set_condition(obj, {"type": "PodScheduled", "status": FALSE, "lastProbeTime": None, **why}, now())


def quality_of_service(spec: Object) -> str:
    """Returns Guaranteed when every container's limits equal its requests, BestEffort when none says anything."""
    requested: dict[str, int] = {}
    limited: dict[str, int] = {}
    guaranteed = True
    for container in containers_of(spec):
        resources = container.get("resources") or {}
        limits = {k: v for k, v in (resources.get("limits") or {}).items() if k in ("cpu", "memory")}
        for totals, amounts in ((requested, resources.get("requests") or {}), (limited, limits)):
            for name, amount in amounts.items():
                nanos = Quantity.parse(amount).nanos
                if name in ("cpu", "memory") and nanos:
                    totals[name] = totals.get(name, 0) + nanos
        guaranteed = guaranteed and limits.keys() >= {"cpu", "memory"}
    if not requested and not limited:
        return "BestEffort"
    same = guaranteed and requested == limited
    return "Guaranteed" if same else "Burstable"


def job(obj: Object) -> None:
    """Makes a job select its pods by its own uid unless it brings a selector."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    template = spec["template"]["metadata"]
    own = {
        "batch.kubernetes.io/controller-uid": meta["uid"],
        "batch.kubernetes.io/job-name": meta.get("name", ""),
        "controller-uid": meta["uid"],
        "job-name": meta.get("name", ""),
    }
    before = template.get("labels") or {}
    template["labels"] = {**before, **own}
    if (meta.get("labels") or {}) == before:
        meta["labels"] = dict(template["labels"])
    selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selector.setdefault("batch.kubernetes.io/controller-uid", meta["uid"])


def daemon_set(obj: Object) -> None:
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = str(max(int(annotations.get(_TEMPLATE_GENERATION, 0)), 1))


def claim(obj: Object) -> None:
    _protect(obj, "kubernetes.io/pvc-protection")
    obj["status"] = {"phase": "Pending"}


def volume(obj: Object) -> None:
    _protect(obj, "kubernetes.io/pv-protection")
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now()}


def attributes_class(obj: Object) -> None:
    _protect(obj, "kubernetes.io/vac-protection")


def _protect(obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def namespace(obj: Object) -> None:
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")
    finalizers = obj["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    obj["status"] = {"phase": "Active"}


def node(obj: Object) -> None:
    """Taints a new node as unready: whoever runs it takes the taint away."""
    taints = obj["spec"].setdefault("taints", [])
    if not any(each.get("key") == _NOT_READY for each in taints):
        taints.append({"key": _NOT_READY, "effect": "NoSchedule"})


def changed_daemon_set(new: Object, old: Object) -> None:
    before = int(annotations_of(old).get(_TEMPLATE_GENERATION, "0"))
    after = before + (new["spec"]["template"] != old["spec"]["template"])
    new["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(after)


def api_service(obj: Object) -> None:
    """Marks an API that this server serves itself as available from the start."""
    obj["status"] = {}
    if "service" not in obj["spec"]:
        message = "Local APIServices are always available"
        condition = {"type": "Available", "status": "True", "reason": "Local", "message": message}
        obj["status"] = {"conditions": [{**condition, "lastTransitionTime": now()}]}
