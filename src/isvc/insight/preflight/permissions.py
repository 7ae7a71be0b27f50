"""Checks what the caller may do that an installation needs, with SelfSubjectAccessReviews."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, NamedTuple

from isvc.insight.preflight.finding import Finding, error, ok
from isvc.toolkit.client import Client
from isvc.toolkit.client.self_review import may


class Right(NamedTuple):
    verb: str
    group: str
    resource: str
    in_system_namespace: bool = False


NEEDED: Final = (
    Right("create", "", "namespaces"),
    Right("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    Right("create", "rbac.authorization.k8s.io", "clusterroles"),
    Right("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    Right("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    Right("create", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    Right("create", "serving.kserve.io", "clusterservingruntimes"),
    Right("create", "apps", "deployments", True),
    Right("create", "", "configmaps", True),
    Right("create", "", "services", True),
    Right("create", "", "serviceaccounts", True),
)


async def check_permissions(client: Client, namespace: str) -> list[Finding]:
    allowed = await asyncio.gather(
        *(
            may(client, right.verb, right.group, right.resource, namespace if right.in_system_namespace else "")
            for right in NEEDED
        )
    )
    return [*_findings([right for right, granted in zip(NEEDED, allowed, strict=True) if not granted], namespace)]


def _findings(missing: list[Right], namespace: str) -> Iterator[Finding]:
    if not missing:
        yield ok("permissions", "you may install everything")
    for right in missing:
        where = f" in namespace {namespace}" if right.in_system_namespace else ""
        what = f"{right.resource}.{right.group}" if right.group else right.resource
        yield error("permissions", f"you may not {right.verb} {what}{where}", "ask an administrator of the cluster")
