"""Validates Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs and CronJobs."""

from __future__ import annotations

from isvc.apiserver.builtin.validation.checks import (
    Errors,
    at_most_all,
    check_name,
    check_unchanged,
    count_or_percent,
    not_negative,
    one_of,
    selector,
    selects,
)
from isvc.apiserver.builtin.validation.pods import template
from isvc.apiserver.field_errors import Struct, forbidden, invalid, not_supported, required
from isvc.apiserver.objects import names
from isvc.kube.objects import Object, dig

_STATEFUL_WORDS = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_MUTABLE = frozenset({
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
})  # fmt: skip

_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")


def _check_selector(spec: Object, kind: str) -> Errors:
    """Checks that a controller selects the pods it makes, and makes pods that it selects."""
    wanted = spec.get("selector")
    if wanted is None:
        yield required("spec.selector")
    else:
        problems = list(selector("spec.selector", wanted))
        yield from problems
        if not problems and not (wanted.get("matchLabels") or wanted.get("matchExpressions")):
            yield invalid("spec.selector", wanted, f"empty selector is invalid for {kind}")
        elif problems:
            shown = Struct({key: wanted[key] for key in ("matchLabels", "matchExpressions") if key in wanted})
            yield invalid("spec.selector", shown, "invalid label selector")
            return
    found = spec["template"]["metadata"].get("labels")
    empty = wanted is not None and not (wanted.get("matchLabels") or wanted.get("matchExpressions"))
    if not empty and not (wanted and selects(wanted, found or {})):
        yield invalid("spec.template.metadata.labels", found, "`selector` does not match template `labels`")


def _always(spec: Object, kind: str) -> Errors:
    """Checks that pods that are kept running neither end by themselves nor have a deadline."""
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        yield from one_of("spec.template.spec.restartPolicy", policy, ("Always",))
    if "activeDeadlineSeconds" in spec["template"]["spec"]:
        yield forbidden("spec.template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def deployment(obj: Object) -> Errors:
    spec = obj["spec"]
    yield from not_negative("spec.replicas", spec.get("replicas"))
    yield from _check_selector(spec, "deployment")
    yield from template("spec.template", spec["template"])
    yield from _always(spec, "ReplicaSet")
    yield from _strategy(spec["strategy"])
    yield from not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    yield from not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    yield from not_negative("spec.progressDeadlineSeconds", deadline)
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def deployment_status(obj: Object) -> Errors:
    status = obj.get("status") or {}
    total, ready, available = (status.get(key, 0) for key in ("replicas", "readyReplicas", "availableReplicas"))
    for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"):
        yield from not_negative(f"status.{key}", status.get(key))
    for key in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if status.get(key, 0) > total:
            yield invalid(f"status.{key}", status[key], "cannot be greater than status.replicas")
    if available > ready:
        yield invalid("status.availableReplicas", available, "cannot be greater than readyReplicas")


def _strategy(strategy: Object) -> Errors:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "Recreate":
        if rolling is not None:
            yield forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif strategy["type"] != "RollingUpdate":
        shown = {"Type": strategy["type"], "RollingUpdate": rolling}
        yield not_supported("spec.strategy", Struct(shown), ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        yield from _check_rolling_update("spec.strategy.rollingUpdate", rolling)


def _check_rolling_update(path: str, rolling: Object) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    yield from count_or_percent(f"{path}.maxUnavailable", unavailable)
    yield from count_or_percent(f"{path}.maxSurge", surge)
    if unavailable in (0, "0%") and surge in (0, "0%"):
        yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(f"{path}.maxUnavailable", unavailable)


def replica_set(obj: Object) -> Errors:
    spec = obj["spec"]
    yield from not_negative("spec.replicas", spec.get("replicas"))
    yield from not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    yield from _check_selector(spec, "replicaset")
    yield from template("spec.template", spec["template"])
    yield from _always(spec, "ReplicaSet")


def daemon_set(obj: Object) -> Errors:
    spec, strategy = obj["spec"], obj["spec"]["updateStrategy"]
    yield from _check_selector(spec, "daemonset")
    yield from template("spec.template", spec["template"])
    yield from _always(spec, "DaemonSet")
    if strategy["type"] not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}
        yield not_supported("spec.updateStrategy", Struct(shown), ("RollingUpdate", "OnDelete"))


def stateful_set(obj: Object) -> Errors:
    spec, strategy = obj["spec"], obj["spec"]["updateStrategy"]
    if spec["podManagementPolicy"] not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", spec["podManagementPolicy"], "must be 'OrderedReady' or 'Parallel'")
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] not in ("RollingUpdate", "OnDelete"):
        shown = Struct({"Type": strategy["type"], "RollingUpdate": rolling})
        yield invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    elif strategy["type"] == "OnDelete" and rolling is not None:
        shown = Struct({"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")})
        yield invalid("spec.updateStrategy.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    yield from not_negative("spec.replicas", spec.get("replicas"))
    if spec.get("serviceName"):
        yield from check_name("spec.serviceName", spec["serviceName"], names.dns_label)
    yield from _check_selector(spec, "statefulset")
    yield from template("spec.template", _with_claims(spec))
    yield from _always(spec, "StatefulSet")


def _with_claims(spec: Object) -> Object:
    """Returns the template with the volumes that its pods will have from claims of their own."""
    claimed = [each["metadata"].get("name", "") for each in spec.get("volumeClaimTemplates") or ()]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed]
    pod = spec["template"]["spec"]
    others = [each for each in pod.get("volumes") or () if each.get("name") not in claimed]
    return {**spec["template"], "spec": {**pod, "volumes": [*others, *volumes]}}


def revision_update(new: Object, old: Object) -> Errors:
    yield from check_unchanged("data", new.get("data"), old.get("data"))


def selector_unchanged(new: Object, old: Object) -> Errors:
    yield from check_unchanged("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))


def stateful_set_update(new: Object, old: Object) -> Errors:
    keys = (new["spec"].keys() | old["spec"].keys()) - _STATEFUL_MUTABLE
    if any(new["spec"].get(key) != old["spec"].get(key) for key in keys):
        yield forbidden("spec", _STATEFUL_WORDS)


def job(obj: Object) -> Errors:
    yield from job_spec("spec", obj["spec"])
    spec, uid = obj["spec"], obj["metadata"].get("uid")
    own = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    is_new = not obj["metadata"].get("resourceVersion")
    if spec.get("selector") is None:
        yield required("spec.selector")
    elif is_new and not spec.get("manualSelector") and spec["selector"] != own:
        yield invalid("spec.selector", spec["selector"], "`selector` not auto-generated")
    found = spec["template"]["metadata"].get("labels")
    if spec.get("selector") is None or not selects(spec["selector"], found or {}):
        yield invalid("spec.template.metadata.labels", found, "`selector` does not match template `labels`")


def job_spec(path: str, spec: Object) -> Errors:
    for key in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        yield from not_negative(f"{path}.{key}", spec.get(key))
    mode = spec.get("completionMode", "NonIndexed")
    yield from one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    yield from template(f"{path}.template", spec["template"])
    if spec["template"]["spec"].get("restartPolicy") == "Always":
        yield required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def job_update(new: Object, old: Object) -> Errors:
    after, before = new["spec"], old["spec"]
    yield from _completions(after, before)
    if before.get("suspend") and not dig(old, "status", "startTime"):
        before = {**before, "template": _scheduled_as(after["template"], before["template"])}
    for key in ("selector", "template", "completionMode", "backoffLimitPerIndex", "managedBy"):
        yield from check_unchanged(f"spec.{key}", after.get(key), before.get(key))


def _completions(after: Object, before: Object) -> Errors:
    """Lets an Indexed job grow and shrink, with as many completions as pods at a time."""
    if after.get("completionMode") != "Indexed":
        yield from check_unchanged("spec.completions", after.get("completions"), before.get("completions"))
    elif after.get("completions") not in (None, before.get("completions"), after.get("parallelism")):
        yield invalid("spec.completions", after["completions"], "can only be modified in tandem with spec.parallelism")


def _scheduled_as(new: Object, old: Object) -> Object:
    """Copies what may change until a suspended job starts into the old template: metadata and where pods may run."""
    spec = {key: value for key, value in old["spec"].items() if key not in (*_SCHEDULING, "affinity")}
    spec |= {key: new["spec"][key] for key in _SCHEDULING if key in new["spec"]}
    affinity = {key: value for key, value in (old["spec"].get("affinity") or {}).items() if key != "nodeAffinity"}
    wanted = new["spec"].get("affinity")
    if wanted and "nodeAffinity" in wanted:
        affinity["nodeAffinity"] = wanted["nodeAffinity"]
    if affinity or wanted is not None:
        spec["affinity"] = affinity
    metadata = {key: value for key, value in old["metadata"].items() if key not in ("labels", "annotations")}
    metadata |= {key: new["metadata"][key] for key in ("labels", "annotations") if key in new["metadata"]}
    return {**old, "metadata": metadata, "spec": spec}


def cron_job(obj: Object) -> Errors:
    spec = obj["spec"]
    fields = str(spec.get("schedule") or "").split()
    if not fields:
        yield required("spec.schedule")
    elif not fields[0].startswith("@") and len(fields) != 5:
        words = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        yield invalid("spec.schedule", spec["schedule"], words)
    yield from one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    yield from job_spec("spec.jobTemplate.spec", spec["jobTemplate"]["spec"])
