"""The status of a CustomResourceDefinition: which of its names are accepted, and whether it is established.

Definitions of one group share two spaces of names: those of resources (plural, singular, short names) and those of
kinds (kind, list kind). The first to ask gets a name. A definition that did not get all of its names is not
established, which means not served; once established, it stays so, with the names it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from isvc.apiserver.objects.metadata import now
from isvc.apiserver.refusals import join_reasons
from isvc.kube.conditions import find, is_condition_true
from isvc.kube.objects import Object, annotations_of

APPROVAL = "api-approved.kubernetes.io"


class Taken(NamedTuple):
    """Names of a group that belong to other definitions."""

    resources: frozenset[str]
    kinds: frozenset[str]


def is_established(crd: Object) -> bool:
    return is_condition_true(crd, "Established")


def next_status(crd: Object, before: Object, taken: Taken) -> Object:
    """Returns the status after `before`, given what names of its group others have."""
    stored = list(before.get("storedVersions") or ())
    names, problem = _accept(crd["spec"]["names"], before.get("acceptedNames") or {}, taken)
    conditions = list(before.get("conditions") or ())
    for condition in (_names_accepted(problem), _established_condition(conditions, problem), *_approval(crd)):
        conditions = _with(conditions, condition)
    return {
        "conditions": conditions,
        "acceptedNames": names,
        "storedVersions": stored + [each for each in storage_versions(crd) if each not in stored],
    }


def storage_versions(crd: Object) -> list[str]:
    """Returns the version that objects are stored in, or none where the definition forgets to say."""
    return [each["name"] for each in crd["spec"].get("versions") or () if each.get("storage")][:1]


def _accept(wanted: Object, accepted: Object, taken: Taken) -> tuple[Object, tuple[str, str] | None]:
    """Returns the names that are free among the wanted ones, else what was accepted before; and the last conflict."""
    names: Object = {"plural": "", "kind": ""}
    problem = None
    for key in ("plural", "singular", "shortNames", "kind", "listKind"):
        others = taken.kinds if key in ("kind", "listKind") else taken.resources
        conflicts = [each for each in _as_set(wanted.get(key)) if each in others - _as_set(accepted.get(key)).keys()]
        if conflicts:
            problem = f"{key[0].upper()}{key[1:]}Conflict", _in_use(conflicts)
        chosen = (accepted if conflicts else wanted).get(key)
        names |= {key: chosen} if chosen else {}
    return names | ({"categories": wanted["categories"]} if wanted.get("categories") else {}), problem


def _as_set(value: str | list[str] | None) -> dict[str, None]:
    """Returns one name, several or none, in order."""
    return dict.fromkeys([value] if isinstance(value, str) else value or ())


def _in_use(names: list[str]) -> str:
    return join_reasons(f'"{name}" is already in use' for name in names)


def _names_accepted(problem: tuple[str, str] | None) -> Object:
    if problem:
        return condition("NamesAccepted", "False", *problem)
    return condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")


def _established_condition(conditions: Iterable[Object], problem: tuple[str, str] | None) -> Object:
    before = find(conditions, "Established")
    if before and (before["status"] == "True" or problem):
        return before
    if problem:
        return condition("Established", "False", "NotAccepted", "not all names are accepted")
    return condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")


def is_protected(group: str) -> bool:
    """Groups that belong to Kubernetes need a mark that somebody reviewed them."""
    return f".{group}".endswith((".k8s.io", ".kubernetes.io"))


def is_approved(mark: str) -> bool:
    try:
        parts = urlsplit(mark)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


def _approval(crd: Object) -> Iterator[Object]:
    mark = annotations_of(crd).get(APPROVAL, "")
    if not is_protected(crd["spec"].get("group", "")):
        return
    kind = "KubernetesAPIApprovalPolicyConformant"
    if is_approved(mark):
        yield condition(kind, "True", "ApprovedAnnotation", f"approved in {mark}")
    elif mark.startswith("unapproved"):
        yield condition(kind, "False", "UnapprovedAnnotation", f'not approved: "{mark}"')


def condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "lastTransitionTime": now(), "reason": reason, "message": message}


def _with(conditions: list[Object], new: Object) -> list[Object]:
    """Returns the conditions with a new one in the place of its like; a status that stays as it is keeps its time."""
    before = find(conditions, new["type"])
    if before is None:
        return [*conditions, new]
    if before["status"] == new["status"]:
        new = {**new, "lastTransitionTime": before["lastTransitionTime"]}
    return [new if each is before else each for each in conditions]
