"""What only the server says about a new or changed object: a first status, generated selectors, protections.

In Kubernetes some of this comes from admission plugins that are always on (default tolerations, priorities,
protection of volumes in use).
"""

from __future__ import annotations

from datetime import UTC, datetime

from isvc.kube.errors import Forbidden
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity

_UNTOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def pod(obj: Object) -> None:
    spec = obj["spec"]
    obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.setdefault("priority", 0) != 0 and not spec.get("priorityClassName"):
        raise _priority_forbidden(obj)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    _tolerate(spec)


def _priority_forbidden(obj: Object) -> Forbidden:
    name = obj["metadata"].get("name", "")
    words = (
        f"the integer value of priority ({obj['spec']['priority']}) must not be provided in pod spec;"
        " priority admission controller computed 0 from the given PriorityClass name"
    )
    return Forbidden(f'pods "{name}" is forbidden: {words}', details={"name": name, "kind": "pods"})


def _tolerate(spec: Object) -> None:
    tolerations = spec.get("tolerations") or []
    for key in _UNTOLERATED:
        if not any(_tolerates(each, key) for each in tolerations):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations = [*tolerations, added]
    spec["tolerations"] = tolerations


def _tolerates(toleration: Object, key: str) -> bool:
    return bool(toleration.get("key", key) == key and toleration.get("effect", "NoExecute") == "NoExecute")


def quality_of_service(spec: Object) -> str:
    """Guaranteed when every container's limits equal its requests, BestEffort when none says anything."""
    requested: dict[str, int] = {}
    limited: dict[str, int] = {}
    guaranteed = True
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
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
    """A job selects its pods by its own uid unless it brings a selector."""
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
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now}


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
    """A node starts out unready: whoever runs it takes the taint away."""
    taints = obj["spec"].setdefault("taints", [])
    if not any(each.get("key") == _UNTOLERATED[0] for each in taints):
        taints.append({"key": _UNTOLERATED[0], "effect": "NoSchedule"})


def changed_daemon_set(new: Object, old: Object) -> None:
    before = int((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0"))
    after = before + (new["spec"]["template"] != old["spec"]["template"])
    new["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(after)


def changed_pod(new: Object, old: Object) -> None:
    _tolerate(new["spec"])
    for key in ("priority", "preemptionPolicy"):
        if key in old["spec"]:
            new["spec"].setdefault(key, old["spec"][key])


def api_service(obj: Object) -> None:
    """An API that this server serves itself is available from the start."""
    obj["status"] = {}
    if "service" not in obj["spec"]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        message = "Local APIServices are always available"
        condition = {"type": "Available", "status": "True", "reason": "Local", "message": message}
        obj["status"] = {"conditions": [{**condition, "lastTransitionTime": now}]}
