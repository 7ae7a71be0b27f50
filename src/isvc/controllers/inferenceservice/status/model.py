"""How far the model is, read off the newest predictor pod: downloading, loading, loaded, or why not."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Object, creation_time_of, dig, labels_of, name_of
from isvc.serving.containers import MODEL_SERVER

STORAGE_INITIALIZER = "storage-initializer"
TEMPLATE_HASH = "pod-template-hash"
NOT_CREATED = ("CreateContainerConfigError", "CreateContainerError")  # a Secret is missing, or the disk is full
PENDING, LOADING, LOADED, FAILED = "Pending", "Loading", "Loaded", "FailedToLoad"
_TRANSITIONS = {PENDING: "InProgress", LOADING: "InProgress", LOADED: "UpToDate", FAILED: "BlockedByFailedLoad"}


def newest_first(pods: Sequence[Object]) -> list[Object]:
    ordered = sorted(pods, key=name_of)
    ordered.sort(key=creation_time_of, reverse=True)
    return ordered


def refuse(edit: StatusEdit, reason: str, message: str) -> None:
    """The spec cannot be served: the target model will not load until that changes."""
    model = _model(edit)
    model["transitionStatus"] = "InvalidSpec"
    model.setdefault("states", {"activeModelState": ""})["targetModelState"] = FAILED
    model["lastFailureInfo"] = {"reason": reason, "message": message}


def propagate(edit: StatusEdit, pods: Sequence[Object], *, settled: bool = True, failed: bool = False) -> None:
    """`settled`: the ready revision is the newest. `failed`: there are no pods because something went wrong."""
    pods = newest_first(pods)
    copies = {"failedCopies": dig(_model(edit), "copies", "failedCopies") or 0}
    if ready := sum(map(_is_ready, pods)):
        copies["totalCopies"] = ready
    if not pods:
        _model(edit)["copies"] = copies
        _enter(edit, FAILED if failed else PENDING)
        return
    download = _status_of(pods[0], "initContainerStatuses", STORAGE_INITIALIZER)
    if "running" in download and download["last"]:
        return  # between two attempts: what was said about the last one still holds
    _model(edit)["copies"] = copies
    if "running" in download:
        _enter(edit, LOADING)
    elif failure := _failure(download) or _failed_update(pods):
        _enter(edit, FAILED, failure)
    elif edit.conditions.is_happy() and settled:
        _enter(edit, LOADED)
    elif server := _status_of(pods[0], "containerStatuses", MODEL_SERVER):
        failure = _failure(server)
        _enter(edit, FAILED if failure else PENDING, failure)


def _failed_update(pods: Sequence[Object]) -> Object | None:
    """Returns why the newest pod does not become ready, if it is to replace pods of another template that serve."""
    newest = pods[0]
    replaced = (pod for pod in pods[1:] if labels_of(pod).get(TEMPLATE_HASH) != labels_of(newest).get(TEMPLATE_HASH))
    if _is_ready(newest) or not any(map(_is_ready, replaced)):
        return None
    server = _status_of(newest, "containerStatuses", MODEL_SERVER)
    return _failure(server) or _failure({"terminated": server.get("last")})


def _model(edit: StatusEdit) -> Object:
    model: Object = edit.fields.setdefault("modelStatus", {"transitionStatus": ""})
    return model


def _enter(edit: StatusEdit, state: str, failure: Object | None = None) -> None:
    model = _model(edit)
    states = model.setdefault("states", {"activeModelState": ""})
    states["targetModelState"] = state
    model["transitionStatus"] = _TRANSITIONS[state]
    if state == LOADED:
        states["activeModelState"] = LOADED
    if failure:
        model["lastFailureInfo"] = failure


def _is_ready(pod: Object) -> bool:
    return dig(pod, "status", "phase") == "Running" and is_condition_true(pod, "Ready")


def _status_of(pod: Object, field: str, container: str) -> Object:
    """Returns the state of a container, with how it last ended under `last`; {} if nothing is known."""
    for status in dig(pod, "status", field) or ():
        if status.get("name") == container:
            return {**(status.get("state") or {}), "last": dig(status, "lastState", "terminated")}
    return {}


def _failure(state: Object) -> Object | None:
    """Returns what a container that ended with an error left behind, or what keeps it from being created."""
    if dig(state, "waiting", "reason") in NOT_CREATED and (why := dig(state, "waiting", "message")):
        return {"reason": "ModelLoadFailed", "message": why}
    ended = state.get("terminated")
    if ended is None or ended.get("reason") != "Error":
        crashing = dig(state, "waiting", "reason") == "CrashLoopBackOff"
        ended = state.get("last") if crashing else None
    if ended is None:
        return None
    failure = {"reason": "ModelLoadFailed", "message": ended.get("message"), "exitCode": ended.get("exitCode")}
    return {key: value for key, value in failure.items() if value}
