"""rbac.authorization.k8s.io, and the reviews of authorization.k8s.io and authentication.k8s.io."""

from __future__ import annotations

from typing import Any, Final

from isvc.apiserver.builtin.kind import CREATE_ONLY, Kind
from isvc.apiserver.builtin.validation import access as rules
from isvc.apiserver.tables import access
from isvc.kube.resource import Resource


def _review(group: str, plural: str, name: str, namespaced: bool = False) -> Kind:
    return Kind(resource=Resource(f"{group}.k8s.io", "v1", plural, name, namespaced), verbs=CREATE_ONLY)


def _rbac(plural: str, name: str, namespaced: bool, **record: Any) -> Kind:
    resource = Resource("rbac.authorization.k8s.io", "v1", plural, name, namespaced)
    return Kind(resource=resource, names="path", created_by_update=True, **record)


REVIEWS: Final = (
    _review("authentication", "selfsubjectreviews", "SelfSubjectReview"),
    _review("authentication", "tokenreviews", "TokenReview"),
    _review("authorization", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review("authorization", "subjectaccessreviews", "SubjectAccessReview"),
)
_BINDING: Final[dict[str, Any]] = {
    "columns": access.ROLE_BINDINGS,
    "check": rules.role_binding,
    "check_update": rules.role_binding_update,
}
KINDS: Final = (
    _rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False, **_BINDING),
    _rbac("clusterroles", "ClusterRole", namespaced=False, columns=access.ROLES, check=rules.role),
    _rbac("rolebindings", "RoleBinding", namespaced=True, **_BINDING),
    _rbac("roles", "Role", namespaced=True, columns=access.ROLES, check=rules.role),
)
