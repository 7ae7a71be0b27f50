"""Whom the endpoint picker runs as, and what that account may do.

It reads pods and pools, holds a lease when there are several pickers, and has requests to its metrics authenticated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.accounts import inherited_secrets
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.engine.plan import Child
from isvc.kube.objects import Object, annotations_of, name_of, namespace_of
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from isvc.serving.llm import labels, names
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

_V1, _V1ALPHA2, _LLM_D = INFERENCE_POOLS.group, INFERENCE_POOLS_V1ALPHA2.group, "llm-d.ai"
_READ: Final = ["get", "list", "watch"]
_RULES: Final[list[Object]] = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {
        "apiGroups": [_V1, _V1ALPHA2],
        "resources": ["inferencepools", "inferenceobjectives", "inferencemodels"],
        "verbs": _READ,
    },
    {"apiGroups": [_V1ALPHA2], "resources": ["inferencemodelrewrites", "inferencepoolimports"], "verbs": _READ},
    {"apiGroups": [_LLM_D], "resources": ["inferenceobjectives", "inferencemodelrewrites"], "verbs": _READ},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": [*_READ, "create", "update", "patch", "delete"],
    },
]


def account(observed: Observed) -> Object:
    """Returns the account that the template names, which has to exist, or one of our own.

    Ours takes over what the model servers' account brings for downloads, so that a tokenizer can fetch the model too.
    """
    named = ((observed.scheduler and observed.scheduler.template) or {}).get("serviceAccountName")
    if named and named != names.scheduler_account(observed.name):
        if (found := observed.lookup.service_account(named)) is None:
            raise Refused(
                "failed to create expected scheduler service account: failed to fetch existing scheduler service"
                f' account {observed.namespace}/{named}: ServiceAccount "{named}" not found'
            )
        return found
    servers = (observed.spec.template or {}).get("serviceAccountName")
    source = observed.lookup.service_account(servers or "default") or {}
    given = labels.labels(observed.name, labels.SCHEDULER)
    annotations = annotations_of(source) if servers else {}
    name = names.scheduler_account(observed.name)
    metadata = child_metadata(observed, name, given, annotations)
    inherited = inherited_secrets(source, observed.live.get((SERVICE_ACCOUNTS, name)))
    return SERVICE_ACCOUNTS.manifest(metadata, **inherited)


def permissions(observed: Observed, used: Object) -> Iterator[Child]:
    """Yields the account, unless it is the user's own, and what allows it its work."""
    name, given = observed.name, labels.labels(observed.name, labels.SCHEDULER)
    if name_of(used) == names.scheduler_account(name):
        yield Child(SERVICE_ACCOUNTS, used)
    subject = {"kind": "ServiceAccount", "name": name_of(used), "namespace": namespace_of(used)}
    if may_authenticate(observed):
        yield _authentication(observed, subject)
    role = names.scheduler_role(name)
    yield Child(ROLES, ROLES.manifest(child_metadata(observed, role, given), rules=_RULES))
    binding = child_metadata(observed, names.scheduler_role_binding(name), given)
    yield Child(ROLE_BINDINGS, ROLE_BINDINGS.manifest(binding, subjects=[subject], roleRef=_role("Role", role)))


def may_authenticate(observed: Observed) -> bool:
    """Returns whether the scheduler may ask the API server who somebody is: whoever runs in its pod may, then."""
    trusted, pod = observed.environment.trusted_images, (observed.scheduler and observed.scheduler.template) or {}
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    is_trusted = not trusted or all(str(each.get("image", "")).startswith(trusted) for each in containers)
    return observed.environment.cluster_wide and is_trusted


def _authentication(observed: Observed, subject: Object) -> Child:
    """Cluster-wide, so it cannot be owned by the service."""
    metadata = {"name": observed.binding_name, "labels": labels.labels(observed.name, labels.SCHEDULER)}
    delegator = _role("ClusterRole", "system:auth-delegator")
    manifest = CLUSTER_ROLE_BINDINGS.manifest(metadata, subjects=[subject], roleRef=delegator)
    return Child(CLUSTER_ROLE_BINDINGS, manifest, owned=False, labels={labels.NAME: observed.name})


def _role(kind: str, name: str) -> Object:
    return {"apiGroup": ROLES.group, "kind": kind, "name": name}
