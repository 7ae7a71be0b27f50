"""A Revision: its Deployment and Service are made once; its status says whether it can serve, and whether it does."""

from __future__ import annotations

from isvc.kube.conditions import Conditions, ConditionSet, conditions_of, find
from isvc.kube.objects import Key, Object, annotations_of, dig, generation_of, labels_of, name_of, namespace_of, uid_of
from isvc.kube.owners import is_controlled_by
from isvc.kube.pods import replicas_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, PODS, SERVICES
from isvc.local.controllers.children import NotOwned, ensure
from isvc.local.controllers.selection import LABELS, pods_with_labels
from isvc.local.knative.kinds import REVISION, REVISION_UID, REVISIONS, deployment_name
from isvc.local.knative.resource_scaling import hpa_of, is_scaled_by_resources
from isvc.local.knative.scaling import scaling_of
from isvc.local.knative.workload import deployment_of, service_of
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Watch, spec_changed
from isvc.toolkit.reads import Read

CONDITIONS = ConditionSet(("ContainerHealthy", "ResourcesAvailable"))
_DEPLOYING = "Deploying"


def controller(context: Context) -> Controller:
    def revision_of(pod: Object) -> list[Key]:
        name = labels_of(pod).get(REVISION)
        return [Key(namespace_of(pod), name)] if name else []

    async def reconcile(key: Key) -> None:
        revision = context.find(REVISIONS, key)
        if revision is None:
            return
        status = CONDITIONS.edit(conditions_of(revision), context.timestamp())
        status.initialize()
        fields: Object = {"observedGeneration": generation_of(revision)}
        try:
            await ensure(context, SERVICES, service_of(revision), REVISIONS.typed(revision))
            deployment = await _deployment(context, revision)
            if is_scaled_by_resources(revision):
                scaler = hpa_of(revision, scaling_of(context.cache, revision))
                await ensure(context, HORIZONTAL_POD_AUTOSCALERS, scaler, REVISIONS.typed(revision))
        except NotOwned as error:
            status.mark_false("ResourcesAvailable", "NotOwned", str(error))
        else:
            fields |= _follow(status, revision, deployment, _pods(context, revision))
        await context.write_status(REVISIONS, revision, {**fields, "conditions": status.result()})

    watches = [
        Watch(REVISIONS),
        Watch(DEPLOYMENTS, to=OwnerOf(REVISIONS)),
        Watch(SERVICES, to=OwnerOf(REVISIONS)),
        Watch(PODS, to=revision_of),
        Watch(HORIZONTAL_POD_AUTOSCALERS, to=OwnerOf(REVISIONS), when=spec_changed),
    ]
    return Controller("knative-revision", reconcile, watches, reads=[Read(PODS, indexers=LABELS)])


async def _deployment(context: Context, revision: Object) -> Object:
    """Makes the Deployment with the replicas that the Revision starts with; later the autoscaler decides."""
    live = context.cache.get(DEPLOYMENTS, deployment_name(name_of(revision)), namespace_of(revision))
    if live is not None and is_controlled_by(live, uid_of(revision)):
        return live
    scaling = scaling_of(context.cache, revision)
    wanted = deployment_of(revision, max(scaling.initial, scaling.least))
    return await ensure(context, DEPLOYMENTS, wanted, REVISIONS.typed(revision))


def _pods(context: Context, revision: Object) -> list[Object]:
    return pods_with_labels(context.cache, namespace_of(revision), {REVISION_UID: uid_of(revision)})


def _follow(status: Conditions, revision: Object, deployment: Object, pods: list[Object]) -> Object:
    wanted = replicas_of(deployment)
    known = deployment.get("status") or {}
    ready = known.get("readyReplicas") or 0
    was_ready = status.status("ResourcesAvailable") == "True" and status.status("ContainerHealthy") == "True"
    if ready and wanted:
        status.mark_true("ResourcesAvailable")
        status.mark_true("ContainerHealthy")
        status.set("Active", "True")
    elif wanted == 0:
        status.set("Active", "False", "NoTraffic", "The target is not receiving traffic.")
        if not was_ready and scaled_from_start(revision):
            status.mark_true("ResourcesAvailable")
            status.mark_true("ContainerHealthy")
    else:
        words = "Requests to the target are being buffered as resources are provisioned."
        status.set("Active", "Unknown", "Queued", words)
        _report_trouble(status, known, pods, was_ready=was_ready)
    return {"actualReplicas": ready, "desiredReplicas": wanted}


def scaled_from_start(revision: Object) -> bool:
    """Returns whether the Revision begins with no pods, and so is as ready as it can be."""
    return annotations_of(revision).get("autoscaling.knative.dev/initial-scale") == "0"


def _report_trouble(status: Conditions, deployment: Object, pods: list[Object], *, was_ready: bool) -> None:
    """Says why no pod is ready, if known; a Revision that was ready once is not called broken for a start."""
    progressing = find(deployment.get("conditions") or (), "Progressing") or {}
    timed_out = progressing.get("reason") == "ProgressDeadlineExceeded"
    for container in (each for pod in pods[:1] for each in dig(pod, "status", "containerStatuses") or ()):
        ended = dig(container, "lastState", "terminated") or dig(container, "state", "terminated")
        waiting = dig(container, "state", "waiting")
        if ended:
            words = ended.get("message") or "container exited with no error"
            status.mark_false(
                "ContainerHealthy", f"ExitCode{ended.get('exitCode', 0)}", f"Container failed with: {words}"
            )
            return
        if waiting and waiting.get("reason") == "ErrImageNeverPull":  # where Knative resolves no digest
            words = f'Unable to fetch image "{container.get("image", "")}": {waiting.get("message", "")}'
            status.mark_false("ContainerHealthy", "ContainerMissing", words)
            return
        if waiting and timed_out:
            status.mark_false("ResourcesAvailable", waiting.get("reason", ""), waiting.get("message", ""))
            return
    if timed_out:
        status.mark_false("ResourcesAvailable", "ProgressDeadlineExceeded", progressing.get("message", ""))
    elif not was_ready:
        status.mark_unknown("ResourcesAvailable", _DEPLOYING)
        status.mark_unknown("ContainerHealthy", _DEPLOYING)
