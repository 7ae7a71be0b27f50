"""Role-based access control: whether a request may go on, by the rules that bindings give to users and groups.

The rules are read from the store, and they and what they allowed are kept until a role or a binding changes. Members of
system:masters may do everything; that is not a matter of roles, so that nobody can lock the administrator out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from isvc.apiserver.access.attributes import Attributes, forbidden, verb_of
from isvc.apiserver.access.rules import allows
from isvc.apiserver.request import Request, User
from isvc.apiserver.store.store import Store
from isvc.apiserver.target import Target
from isvc.kube.objects import Object, dig, labels_of, name_of, namespace_of
from isvc.kube.selectors import LabelSelector
from isvc.wire.bounded import Bounded

MASTERS = "system:masters"
GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"clusterroles.{GROUP}", f"clusterrolebindings.{GROUP}"
ROLES, BINDINGS = f"roles.{GROUP}", f"rolebindings.{GROUP}"
_MOST_DECIDED = 4096
_COLLECTIONS = (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS)


_INTO_PODS = ("pods/attach", "pods/exec", "pods/portforward")


class Grant(NamedTuple):
    """The rules that a binding gives to one subject, in a namespace or ("") everywhere."""

    namespace: str
    rules: list[Object]
    reason: str


class Rbac:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: tuple[int, ...] = ()
        self._grants: dict[tuple[str, str], list[Grant]] = {}
        #: What is allowed on objects of any name.
        self._decided: Bounded[tuple[Any, ...], str] = Bounded(_MOST_DECIDED)

    def allows(self, user: User, wanted: Attributes) -> str | None:
        """Says why the user may do that; returns None if they may not."""
        if MASTERS in user.groups:
            return ""
        self._renew()
        key = (user.username, user.groups, wanted[:5], wanted.path)  # all but the name
        reason = self._decided.get(key)
        if reason is None and (reason := self._decide(user, wanted._replace(name=""))) is not None:
            self._decided[key] = reason
        return self._decide(user, wanted) if reason is None and wanted.name else reason

    def _decide(self, user: User, wanted: Attributes) -> str | None:
        for grant in self._of(user, wanted.namespace):
            if any(allows(rule, wanted) for rule in grant.rules):
                return grant.reason
        return None

    def rules(self, user: User, namespace: str) -> list[Object]:
        """Returns every rule that applies to the user in a namespace."""
        if MASTERS in user.groups:
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            return [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
        return [rule for grant in self._of(user, namespace) for rule in grant.rules]

    def rules_of(self, reference: Object, namespace: str) -> list[Object] | None:
        """Returns the rules of the role that a binding refers to; None if there is no such role."""
        if reference.get("kind") == "ClusterRole":
            entry = self._store.latest(CLUSTER_ROLES, "", reference.get("name", ""))
        else:
            entry = self._store.latest(ROLES, namespace, reference.get("name", ""))
        return self._rules(entry.parse()) if entry else None

    def _of(self, user: User, namespace: str) -> Iterator[Grant]:
        self._renew()
        for subject in (("User", user.username), *(("Group", group) for group in user.groups)):
            for grant in self._grants.get(subject, ()):
                if not grant.namespace or grant.namespace == namespace:
                    yield grant

    def _renew(self) -> None:
        seen = tuple(map(self._store.revision, _COLLECTIONS))
        if seen != self._seen:
            self._grants, self._seen = self._read(), seen
            self._decided.clear()

    def _read(self) -> dict[tuple[str, str], list[Grant]]:
        grants: dict[tuple[str, str], list[Grant]] = {}
        for collection in (CLUSTER_BINDINGS, BINDINGS):
            for entry in self._store.list(collection):
                binding = entry.parse()
                reference, namespace = binding.get("roleRef") or {}, namespace_of(binding)
                rules = self.rules_of(reference, namespace)
                if rules is None:
                    continue
                for subject in binding.get("subjects") or ():
                    where = f" in {namespace}" if namespace else ""
                    reason = (
                        f'RBAC: allowed by {binding["kind"]} "{name_of(binding)}{f"/{namespace}" if where else ""}"'
                        f' of {reference.get("kind")} "{reference.get("name")}"'
                        f' to {subject.get("kind")} "{_subject_text(subject)}"'
                    )
                    grants.setdefault(_subject(subject), []).append(Grant(namespace, rules, reason))
        return grants

    def _rules(self, role: Object) -> list[Object]:
        """Returns a role's own rules, and those of the roles that it is aggregated from."""
        rules = list(role.get("rules") or ())
        aggregated = dig(role, "aggregationRule", "clusterRoleSelectors") or ()
        selectors = [LabelSelector.from_spec(each) for each in aggregated]
        if selectors:
            for entry in self._store.list(CLUSTER_ROLES):
                other = entry.parse()
                if name_of(other) != name_of(role) and any(each.matches(labels_of(other)) for each in selectors):
                    rules += self._rules(other)
        return rules


def _subject(subject: Object) -> tuple[str, str]:
    if subject.get("kind") == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.get('namespace', '')}:{subject.get('name', '')}"
    return str(subject.get("kind", "")), str(subject.get("name", ""))


def _subject_text(subject: Object) -> str:
    namespace = subject.get("namespace")
    return f"{subject.get('name')}/{namespace}" if namespace else str(subject.get("name"))


def authorize(rbac: Rbac, request: Request, target: Target | None) -> None:
    """Raises Forbidden if the request's user may not make it."""
    user = request.user
    assert user is not None
    if MASTERS in user.groups:
        return
    if target is None or not target.plural:
        wanted = Attributes(request.method.lower(), path=request.path)
    else:
        verb = verb_of(request, named=bool(target.name))
        # A namespace is a resource in itself.
        namespace = target.name if (target.group, target.plural) == ("", "namespaces") else target.namespace
        wanted = Attributes(verb, target.group, target.plural, target.subresource, namespace, target.name)
    for each in (wanted, *_further_attributes(request, wanted)):
        if rbac.allows(user, each) is None:
            raise forbidden(user, each)


def _further_attributes(request: Request, wanted: Attributes) -> list[Attributes]:
    """Asks whoever gets into a pod through a WebSocket for the right to create, too, although that sends a GET."""
    if wanted.verb == "get" and wanted.full_resource in _INTO_PODS and "upgrade" in request.headers:
        return [wanted._replace(verb="create")]
    return []
