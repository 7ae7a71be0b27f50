"""Causes in pods: what a container waits for, how it ended, why it is not ready, or why no node takes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding, Level, Place
from isvc.kube.conditions import TRUE, condition_of, is_condition_true
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.pods import container_statuses

STORAGE_INITIALIZER = "storage-initializer"
_NO_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
_NO_CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_DISK = "no space left on device"
_MEMORY = "OOMKilled"
_NOT_FOUND = re.compile(r'(secret|configmap|persistentvolumeclaim) "([^"]+)" not found', re.IGNORECASE)
_KILLED = (137, 143)  # by a probe, or to make room


class Container(NamedTuple):
    """A container of a pod: its status, and what it waits for or how it last ended."""

    pod: Object
    status: Object
    init: bool

    @property
    def name(self) -> str:
        return str(self.status.get("name"))

    @property
    def waiting(self) -> Object:
        return dig(self.status, "state", "waiting") or {}

    @property
    def ended(self) -> Object:
        """How it ended, unless it ended well."""
        ended = dig(self.status, "state", "terminated") or dig(self.status, "lastState", "terminated") or {}
        return {} if ended.get("reason") == "Completed" or ended.get("exitCode") == 0 else ended

    @property
    def is_running(self) -> bool:
        return bool(dig(self.status, "state", "running"))

    @property
    def crashed(self) -> bool:
        """Returns whether it runs again after it ended by itself, and is not ready yet."""
        return self.is_running and not self.status.get("ready") and self.ended.get("exitCode") not in (None, *_KILLED)

    def __str__(self) -> str:
        return f"container {self.name} of pod {name_of(self.pod)}"

    def finding(self, evidence: Evidence, cause: str, message: str, remedy: str) -> Finding:
        chain = (*evidence.chain_to(self.pod), f"container {self.name}: {_state(self)}")
        place = Place(
            name_of(self.pod), self.name, previous=not self.is_running and bool(self.status.get("restartCount"))
        )
        return Finding(cause, message, remedy, chain=chain, place=place)


def containers(evidence: Evidence) -> Iterator[Container]:
    """Yields those of pods that are not ready, the newest pod first, init containers before the others."""
    for pod in evidence.pods:
        if condition_of(pod, "Ready").get("status") != TRUE:
            for field in ("initContainerStatuses", "containerStatuses"):
                for status in dig(pod, "status", field) or ():
                    yield Container(pod, status, field == "initContainerStatuses")


def image(evidence: Evidence) -> Iterator[Finding]:
    for each in containers(evidence):
        if (reason := each.waiting.get("reason")) in _NO_IMAGE:
            wanted = each.status.get("image") or _spec(each).get("image") or ""
            because = _because(each.waiting.get("message") or _event(evidence, each, "Failed") or str(reason))
            remedy = "correct the image, or give the service account a pull secret for its registry"
            if reason == "ErrImageNeverPull":
                remedy = "use an image that has a local program, or name one for it in ~/.isvc/images.yaml"
            message = f"image {wanted} of {each} cannot be pulled{because}"
            yield each.finding(evidence, "ImageCannotBePulled", message, remedy)


def disk(evidence: Evidence) -> Iterator[Finding]:
    """Nothing can be written where the container, its volumes or its model are."""
    for each in containers(evidence):
        if not each.is_running and any(map(_is_about_disk, (each.waiting, each.ended))):
            message = f"{each} cannot be started: the disk of its node is full"
            remedy = "free some space there (models, logs, volumes of other services); it is tried again by itself"
            yield each.finding(evidence, "DiskFull", message, remedy)


def configuration(evidence: Evidence) -> Iterator[Finding]:
    """A secret, a ConfigMap or a volume that a pod needs is not there."""
    for each in containers(evidence):
        if each.waiting.get("reason") in _NO_CONFIG and not _is_about_disk(each.waiting):
            message = f"{each} cannot be created{_because(str(each.waiting.get('message') or ''))}"
            yield each.finding(
                evidence, "MissingConfiguration", message, _remedy(each.waiting, namespace_of(evidence.service))
            )
    refused = {name_of(each.pod) for each in containers(evidence) if each.waiting.get("reason") in _NO_CONFIG}
    for pod in evidence.pods:
        if is_condition_true(pod, "Ready") or any(map(bool, _last_runs(pod))) or name_of(pod) in refused:
            continue
        for event in evidence.events_of(pod):
            if event.get("reason") in ("FailedMount", "FailedAttachVolume") and not _is_about_disk(event):
                message = f"a volume of pod {name_of(pod)} cannot be mounted{_because(str(event.get('message') or ''))}"
                remedy = _remedy(event, namespace_of(evidence.service))
                yield Finding("VolumeCannotBeMounted", message, remedy, chain=evidence.chain_to(pod))
                break


def unschedulable(evidence: Evidence) -> Iterator[Finding]:
    for pod in evidence.pods:
        scheduled = condition_of(pod, "PodScheduled")
        if scheduled.get("status") == "False":
            message = f"no node takes pod {name_of(pod)}{_because(str(scheduled.get('message') or ''))}"
            remedy = "ask for less, or add a node that has it (resources, GPUs, node selector, taints, a bound claim)"
            yield Finding("Unschedulable", message, remedy, chain=evidence.chain_to(pod))


def memory(evidence: Evidence) -> Iterator[Finding]:
    for each in containers(evidence):
        if each.ended.get("reason") == _MEMORY:
            limit = dig(_spec(each), "resources", "limits", "memory")
            message = (
                f"{each} used more memory than its limit{f' of {limit}' if limit else ''} and was killed (OOMKilled)"
            )
            yield each.finding(
                evidence, "OutOfMemory", message, "raise resources.limits.memory, or serve a smaller model"
            )


def download(evidence: Evidence) -> Iterator[Finding]:
    for each in containers(evidence):
        if each.init and each.name.startswith(STORAGE_INITIALIZER) and each.ended:
            because = _because(_last_words(each))
            remedy = "correct the storageUri, or the credentials in the service account's secret"
            yield each.finding(
                evidence, "DownloadFailed", f"model {_source(each)} cannot be downloaded by {each}{because}", remedy
            )


def crash(evidence: Evidence) -> Iterator[Finding]:
    for each in containers(evidence):
        if _is_explained(each):
            continue
        if (each.ended and not each.is_running) or each.waiting.get("reason") == "CrashLoopBackOff" or each.crashed:
            code, count = each.ended.get("exitCode"), each.status.get("restartCount") or 0
            times = f" (restarted {count} times)" if count else ""
            message = f"{each} ends with exit code {code}{times}{_because(_last_words(each))}"
            yield each.finding(
                evidence, "ContainerCrashes", message, "its last log lines say more; correct the model or its arguments"
            )


def probe(evidence: Evidence) -> Iterator[Finding]:
    for each in containers(evidence):
        if each.is_running and not each.init and not each.status.get("ready"):
            failed = _event(evidence, each, "Unhealthy")
            if failed:
                port = _probed_port(each)
                remedy = "see whether the server hangs, or give it more time"
                if "refused" in failed and port:
                    remedy = f"have the server listen on port {port}, or correct the container's port and probe"
                yield each.finding(evidence, "ProbeFails", f"{each} runs but is not ready: {failed}", remedy)


def starting(evidence: Evidence) -> Iterator[Finding]:
    """Says which container is being waited for: nothing is wrong yet."""
    for each in containers(evidence):
        if each.is_running and (each.init or not each.status.get("ready")):
            doing = f"downloads {_source(each)}" if each.name.startswith(STORAGE_INITIALIZER) else "is starting"
            finding = each.finding(evidence, "Starting", f"{each} {doing}", "")
            yield Finding(finding.cause, finding.message, "wait", Level.WAITS, finding.chain, finding.place)


def _event(evidence: Evidence, container: Container, reason: str) -> str:
    return next((str(e.get("message")) for e in evidence.events_of(container.pod) if e.get("reason") == reason), "")


def _is_explained(container: Container) -> bool:
    """Returns whether another cause says better why it ended."""
    is_download = container.init and container.name.startswith(STORAGE_INITIALIZER)
    return is_download or container.ended.get("reason") == _MEMORY or _is_about_disk(container.ended)


def _remedy(said: Object, namespace: str) -> str:
    """Returns what to do about an object that is named as missing, or about something else that is."""
    found = _NOT_FOUND.search(str(said.get("message") or ""))
    if found is None:
        return "create what it names (a Secret, ConfigMap, claim or folder), or take it out of the service"
    kind = {"secret": "Secret", "configmap": "ConfigMap"}.get(found[1].lower(), "PersistentVolumeClaim")
    return f"create the {kind} {found[2]} in namespace {namespace}, or take it out of the service"


def _probed_port(container: Container) -> object:
    probes = (_spec(container).get(f"{kind}Probe") or {} for kind in ("readiness", "startup", "liveness"))
    actions = (action for probe in probes for action in probe.values() if isinstance(action, dict))
    return next((action["port"] for action in actions if "port" in action), 0)


def _is_about_disk(said: Object) -> bool:
    return _DISK in str(said.get("message") or "").lower()


def _last_words(container: Container) -> str:
    lines = [line for line in str(container.ended.get("message") or "").strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else str(container.ended.get("reason") or "")


def _because(words: str) -> str:
    text = " ".join(words.split())
    return f": {text}" if text else ""


def _state(container: Container) -> str:
    if container.waiting:
        return f"waiting ({container.waiting.get('reason')})"
    if container.is_running:
        return "running, not ready" if not container.status.get("ready") else "running"
    return f"ended ({container.ended.get('reason') or 'Completed'})"


def _spec(container: Container) -> Object:
    field = "initContainers" if container.init else "containers"
    found = (each for each in dig(container.pod, "spec", field) or () if each.get("name") == container.name)
    spec: Object = next(found, {})
    return spec


def _source(initializer: Container) -> str:
    return str(next(iter(_spec(initializer).get("args") or ()), "the model"))


def _last_runs(pod: Object) -> Iterator[Object]:
    for status in container_statuses(pod):
        yield dig(status, "state", "running") or dig(status, "lastState", "terminated") or {}
