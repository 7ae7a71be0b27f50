"""A Job's podFailurePolicy: what the failure of a pod means to it, by exit codes and by conditions of the pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isvc.kube.conditions import condition_of
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.pods import container_statuses

_DEFAULT_STATUS = "True"


@dataclass(frozen=True, slots=True)
class Match:
    """The rule that a failed pod matches: what it asks for, and the words for the Job's status."""

    action: str
    message: str


def match(job: Object, pod: Object) -> Match | None:
    """Returns the first rule that fits a failed pod."""
    for index, rule in enumerate(dig(job, "spec", "podFailurePolicy", "rules") or ()):
        found = _by_exit_code(rule.get("onExitCodes"), pod) or _by_condition(rule.get("onPodConditions") or (), pod)
        if found:
            return Match(rule["action"], f"{found} matching {rule['action']} rule at index {index}")
    return None


def _by_exit_code(wanted: Object | None, pod: Object) -> str:
    if wanted is None:
        return ""
    for name, code in _exit_codes(pod):
        if code == 0 or wanted.get("containerName") not in (None, name):
            continue
        if (code in wanted["values"]) == (wanted["operator"] == "In"):
            return f"Container {name} for pod {namespace_of(pod)}/{name_of(pod)} failed with exit code {code}"
    return ""


def _exit_codes(pod: Object) -> Iterator[tuple[str, int]]:
    for status in container_statuses(pod):
        if (code := dig(status, "state", "terminated", "exitCode")) is not None:
            yield status["name"], code


def _by_condition(patterns: Sequence[Object], pod: Object) -> str:
    for pattern in patterns:
        if condition_of(pod, pattern["type"]).get("status") == pattern.get("status", _DEFAULT_STATUS):
            return f"Pod {namespace_of(pod)}/{name_of(pod)} has condition {pattern['type']}"
    return ""
