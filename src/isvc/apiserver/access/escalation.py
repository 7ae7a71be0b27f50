"""Nobody grants what they do not hold: writes of roles and bindings need the permissions that they give away."""

from __future__ import annotations

from isvc.apiserver.access.attributes import Attributes
from isvc.apiserver.access.rbac import GROUP, MASTERS, Rbac
from isvc.apiserver.access.rules import not_covered
from isvc.apiserver.refusals import forbidden
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object


def check_escalation(rbac: Rbac, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
    """Raises Forbidden for a role with rules, or a binding to a role, beyond what the user may do."""
    resource, user = request.description.resource, request.user
    if resource.group != GROUP or MASTERS in user.groups:
        return
    is_role = resource.kind.endswith("Role")
    given = obj.get("rules") if is_role else rbac.rules_of(obj.get("roleRef") or {}, request.namespace)
    if old is not None and is_role and old.get("rules") == given:
        return
    exempt = Attributes("escalate" if is_role else "bind", GROUP, *_target(obj, is_role, resource.plural, request))
    if rbac.allows(user, exempt) is not None:
        return
    missing = not_covered(given or (), rbac.rules(user, request.namespace))
    if missing:
        listed = "\n".join(_rule_text(rule) for rule in missing)
        groups = " ".join(f'"{group}"' for group in user.groups)
        why = f'user "{user.username}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:'
        raise forbidden(resource, request.name, f"{why}\n{listed}")


def _target(obj: Object, is_role: bool, plural: str, request: AdmissionRequest) -> tuple[str, str, str, str]:
    """Returns resource, subresource, namespace and name of the role that the exemption is about."""
    if is_role:
        return plural, "", request.namespace, request.name
    reference = obj.get("roleRef") or {}
    kind = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
    return kind, "", request.namespace, str(reference.get("name", ""))


def _rule_text(rule: Object) -> str:
    """Returns a rule as Go prints it: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`."""
    names = {
        "apiGroups": "APIGroups",
        "resources": "Resources",
        "resourceNames": "ResourceNames",
        "nonResourceURLs": "NonResourceURLs",
        "verbs": "Verbs",
    }
    parts = []
    for key, name in names.items():
        if rule.get(key):
            values = " ".join(f'"{each}"' for each in rule[key])
            parts.append(f"{name}:[{values}]")
    return "{" + ", ".join(parts) + "}"
