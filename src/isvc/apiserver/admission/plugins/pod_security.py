"""PodSecurity: holds pods to the level of the Pod Security Standards that their namespace's labels ask for.

`enforce` refuses pods, `warn` warns of them and of workloads that would make such pods. There is no audit log here, so
that `audit` labels are checked and have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from isvc.apiserver import refusals
from isvc.apiserver.admission.plugins.plugin import Plugin, forbidden
from isvc.apiserver.admission.plugins.pod_security_checks import BASELINE, LATEST, RESTRICTED, Pod, Violation
from isvc.apiserver.field_errors import invalid
from isvc.apiserver.request import AdmissionRequest
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import Object, dig, labels_of

_PREFIX = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_IGNORED = ("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status")
_TEMPLATES = (
    "replicationcontrollers",
    "podtemplates",
    "replicasets.apps",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
)
_MOST_PODS = 3000


class Policy(NamedTuple):
    """A level and the version of Kubernetes whose checks it means."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations(self, metadata: Object, spec: Object) -> list[Violation]:
        if self.level == "privileged":
            return []
        minor = LATEST if self.version == "latest" else min(int(self.version.removeprefix("v1.")), LATEST)
        pod = Pod(metadata, spec, minor)
        checks = BASELINE if self.level == "baseline" else RESTRICTED
        return [found for check in checks if (found := check(pod))]


class PodSecurity(Plugin):
    resources = ("pods", "namespaces", *_TEMPLATES)

    def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        if obj is None:
            return
        match request.description.collection:
            case "namespaces":
                if not request.subresource:
                    self._check_namespace(request, obj, old)
            case "pods":
                if request.subresource not in _IGNORED and (old is None or _runs_other_images(obj, old)):
                    self._check(request, obj, obj["metadata"], obj["spec"])
            case _:
                template = _template(obj)
                if template and not request.subresource:
                    self._check(request, obj, template.get("metadata") or {}, template.get("spec") or {})

    def _check(self, request: AdmissionRequest, obj: Object, metadata: Object, spec: Object) -> None:
        labels = self.reader.labels("namespaces", request.namespace)
        if not any(label.startswith(_PREFIX) for label in labels):
            return
        enforced, warned, _ = policies(labels)
        if request.description.collection == "pods" and (found := enforced.violations(metadata, spec)):
            raise forbidden(request, obj, f'violates PodSecurity "{enforced}": {_join(found)}')
        if found := warned.violations(metadata, spec):
            request.warnings.append(f'would violate PodSecurity "{warned}": {_join(found)}')

    def _check_namespace(self, request: AdmissionRequest, new: Object, old: Object | None) -> None:
        policy, _, errors = policies(labels_of(new))
        before, _, known = policies(labels_of(old)) if old else (Policy(), None, [])
        if errors and errors != known:
            raise refusals.invalid(request.description.gvk, request.name, errors)
        if old is None or policy == before or policy.level == "privileged":
            return
        if policy.version == before.version and _LEVELS.index(policy.level) <= _LEVELS.index(before.level):
            return
        request.warnings += self._pods_against(request.name, policy)

    def _pods_against(self, namespace: str, policy: Policy) -> list[str]:
        """Returns warnings about the pods that are there already, one for each set of reasons."""
        names: dict[str, list[str]] = {}
        for pod in self.reader.list("pods", namespace)[:_MOST_PODS]:
            if found := policy.violations(pod["metadata"], pod["spec"]):
                names.setdefault(", ".join(each.reason for each in found), []).append(pod["metadata"]["name"])
        if not names:
            return []
        words = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{policy}"'
        return [words, *sorted(f"{_first_of(pods)}: {reasons}" for reasons, pods in names.items())]


def policies(labels: Mapping[str, str]) -> tuple[Policy, Policy, list[FieldError]]:
    """Returns what is enforced, what is warned of, and which labels make no sense."""
    errors: list[FieldError] = []
    found: dict[str, Policy] = {}
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(_PREFIX + mode), labels.get(f"{_PREFIX}{mode}-version", "latest")
        if level is not None and level not in _LEVELS:
            errors.append(_label_error(mode, level, f"must be one of {', '.join(_LEVELS)}"))
            level = "restricted" if mode == "enforce" else "privileged"
        if version != "latest" and not _VERSION.fullmatch(version):
            errors.append(_label_error(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        found[mode] = Policy(level or "privileged", version)
    enforce, warn = found["enforce"], found["warn"]
    if _PREFIX + "warn" not in labels and labels.get(_PREFIX + "enforce") in _LEVELS[1:]:
        own_version = f"{_PREFIX}warn-version" in labels
        warn = Policy(enforce.level, warn.version if own_version else enforce.version)
    return enforce, warn, errors


def _label_error(label: str, value: str, why: str) -> FieldError:
    return invalid(f"metadata.labels[{_PREFIX}{label}]", value, why)


def _join(violations: list[Violation]) -> str:
    return ", ".join(map(str, violations))


def _first_of(names: list[str]) -> str:
    others = len(names) - 1
    return min(names) + (f" (and {others} other pod{'s' if others > 1 else ''})" if others else "")


def _template(workload: Object) -> Object | None:
    template = workload.get("template") or dig(workload, "spec", "template")
    found: Object | None = template or dig(workload, "spec", "jobTemplate", "spec", "template")
    return found


def _runs_other_images(new: Object, old: Object) -> bool:
    """Returns whether containers or their images are others: the only change of a pod that is checked again."""
    for field in ("containers", "initContainers", "ephemeralContainers"):
        if [_image(each) for each in new["spec"].get(field) or ()] != [
            _image(each) for each in old["spec"].get(field) or ()
        ]:
            return True
    return False


def _image(container: Object) -> tuple[object, object]:
    return container.get("name"), container.get("image")
