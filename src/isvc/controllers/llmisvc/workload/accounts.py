"""ServiceAccounts of model servers, and what the routing sidecar of disaggregated serving may read.

A template that names an account of the user's own keeps it. Otherwise servers that span nodes, and those with the
sidecar, get one that inherits the pull and download secrets of the namespace's default account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.controllers.llmisvc.workload.phases import Phase, main_phase
from isvc.engine.plan import Child
from isvc.kube.objects import Key, Object, name_of
from isvc.kube.resource import ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from isvc.serving.containers import find_init_container
from isvc.serving.llm import labels, names
from isvc.serving.refused import Refused

ROUTING_SIDECAR: Final = "llm-d-routing-sidecar"
_READ: Final = ["get", "list", "watch"]
_SIDECAR_RULES: Final[list[Object]] = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {
        "apiGroups": ["inference.networking.x-k8s.io", "inference.networking.k8s.io"],
        "resources": ["inferencepools"],
        "verbs": _READ,
    },
]
"""What the sidecar checks before it forwards: whether the address it is asked to call is a pod of its pool."""
_SECRETS: Final = ("secrets", "imagePullSecrets")
_CALLED: Final = {SERVICE_ACCOUNTS: "service account", ROLES: "role", ROLE_BINDINGS: "rolebinding"}


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount: the user's own, or a child of the service."""

    manifest: Object
    is_users: bool

    @property
    def name(self) -> str:
        return name_of(self.manifest)

    @property
    def child(self) -> Child:
        return Child(SERVICE_ACCOUNTS, self.manifest)


def attempt(child: Child, nodes: str) -> str:
    """Returns what is tried with an account, role or binding, in the words that conditions use."""
    return f"failed to reconcile {nodes} {_CALLED[child.resource]} {Key.of(child.manifest)}"


def has_sidecar(pod: Object | None) -> bool:
    return find_init_container(pod or {}, ROUTING_SIDECAR) is not None


def single_node_account(observed: Observed) -> Account:
    named = (observed.spec.template or {}).get("serviceAccountName") or ""
    given = labels.labels(observed.name, labels.WORKLOAD)
    return _account(observed, named, names.deployment(observed.name), given, "single node main")


def worker_account(observed: Observed, phase: Phase) -> Account:
    """Returns the account of a leader and its workers; one that the leader's template names goes first."""
    templates = (phase.template or {}, phase.worker or {})
    named = next((name for each in templates if (name := each.get("serviceAccountName"))), "")
    which = f"multi node {phase.name}"
    return _account(observed, named, phase.worker_set, labels.labels(observed.name), which)


def named_account(observed: Observed, pod: Object) -> Object | None:
    """Returns the account that a template names, if it names one."""
    name = pod.get("serviceAccountName") or ""
    return _require_account(observed, name, "single node prefill") if name else None


def single_node_permissions(observed: Observed) -> Iterator[Child]:
    if not has_sidecar(main_phase(observed).template):
        return
    account = single_node_account(observed)
    if not account.is_users:
        yield account.child
    given = labels.labels(observed.name, labels.WORKLOAD)
    yield from _permissions(observed, account, names.role(observed.name), names.role_binding(observed.name), given)


def worker_permissions(observed: Observed, phase: Phase, account: Account) -> Iterator[Child]:
    if not has_sidecar(phase.template) and not has_sidecar(phase.worker):
        return
    role, binding = names.worker_role(observed.name), names.worker_role_binding(observed.name)
    yield from _permissions(observed, account, role, binding, labels.labels(observed.name))


def _account(observed: Observed, named: str, own: str, given: Mapping[str, str], which: str) -> Account:
    if named and named != own:
        return Account(_require_account(observed, named, which), is_users=True)
    default = observed.lookup.service_account("default") or {}
    inherited = inherited_secrets(default, observed.live.get((SERVICE_ACCOUNTS, own)))
    manifest = SERVICE_ACCOUNTS.manifest(child_metadata(observed, own, given), **inherited)
    return Account(manifest, is_users=False)


def _require_account(observed: Observed, name: str, which: str) -> Object:
    found = observed.lookup.service_account(name)
    if found is None:
        where = f"failed to fetch existing {which} service account {observed.namespace}/{name}"
        raise Refused(f'{where}: ServiceAccount "{name}" not found')
    return found


def _permissions(
    observed: Observed, account: Account, role: str, binding: str, given: Mapping[str, str]
) -> Iterator[Child]:
    yield Child(ROLES, ROLES.manifest(child_metadata(observed, role, given), rules=_SIDECAR_RULES))
    subjects = [{"kind": "ServiceAccount", "name": account.name, "namespace": observed.namespace}]
    role_ref = {"apiGroup": ROLES.group, "kind": "Role", "name": role}
    metadata = child_metadata(observed, binding, given)
    yield Child(ROLE_BINDINGS, ROLE_BINDINGS.manifest(metadata, subjects=subjects, roleRef=role_ref))


def inherited_secrets(source: Object, live: Object | None) -> Object:
    """Returns the source's secrets; where our account has them already, with those that follow.

    Some clusters add pull secrets to every account; an update that took them away would be undone, for ever.
    """
    return {key: merged for key in _SECRETS if (merged := _merge((live or {}).get(key) or [], source.get(key) or []))}


def _merge(present: list[Object], wanted: list[Object]) -> list[Object]:
    return present if present[: len(wanted)] == wanted else wanted
