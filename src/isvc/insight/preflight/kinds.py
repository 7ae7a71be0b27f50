"""Checks the version of Kubernetes and the kinds of other projects that services may use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.insight.preflight.finding import Finding, error, ok, warning
from isvc.kube.objects import Object, annotations_of, dig, is_being_deleted, labels_of, name_of
from isvc.kube.resource import Resource
from isvc.serving.thirdparty import PROJECTS

OLDEST: Final = (1, 30)  # the first whose webhooks have matchConditions for good


def check_version(version: tuple[str, str]) -> Finding:
    major, minor = (int("".join(filter(str.isdigit, part)) or 0) for part in version)
    if (major, minor) < OLDEST:
        message = f"Kubernetes {major}.{minor} is older than {OLDEST[0]}.{OLDEST[1]}"
        return error("kubernetes", message, "upgrade the cluster: the webhooks have matchConditions")
    return ok("kubernetes", f"Kubernetes {major}.{minor}")


def check_projects(crds: list[Object]) -> Iterator[Finding]:
    found = {name_of(crd): crd for crd in crds}
    for project in PROJECTS:
        missing = [resource for resource in project.resources if str(resource) not in found]
        if missing:
            yield warning(project.name, f"there is no CRD {missing[0]}", f"install it for {project.needed_for}")
            continue
        installed = [found[str(resource)] for resource in project.resources]
        problems = [
            problem
            for resource, crd in zip(project.resources, installed, strict=True)
            if (problem := _why_unusable(resource, crd))
        ]
        if problems:
            yield error(project.name, problems[0], f"upgrade it, or services cannot use {project.needed_for}")
        else:
            yield ok(project.name, _describe_version(installed[0]))


def _why_unusable(resource: Resource, crd: Object) -> str:
    """Says why a kind cannot be used although it is there."""
    if is_being_deleted(crd):
        return f"CRD {resource} is being deleted"
    served = [version["name"] for version in dig(crd, "spec", "versions") or () if version.get("served")]
    if resource.version not in served:
        return f"CRD {resource} serves {', '.join(served) or 'nothing'}, and not {resource.version}"
    return ""


def _describe_version(crd: Object) -> str:
    """Says that a kind is installed, with its version where the CRD has one."""
    labels = labels_of(crd)
    version = annotations_of(crd).get("gateway.networking.k8s.io/bundle-version") or labels.get(
        "app.kubernetes.io/version"
    )
    return f"installed, {version}" if version else "installed"
