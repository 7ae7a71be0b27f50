"""Owner references: which object a child belongs to, and how that is written down."""

from __future__ import annotations

from isvc.kube.objects import Object, name_of, uid_of


def controller_ref(owner: Object) -> Object:
    """Returns the reference by which `owner` controls a child; deleting the owner waits for the child."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owner_refs(obj: Object) -> list[Object]:
    return obj.get("metadata", {}).get("ownerReferences") or []


def controller_of(obj: Object) -> Object | None:
    """Returns the one owner reference that is marked as controller, if there is one."""
    return next((ref for ref in owner_refs(obj) if ref.get("controller")), None)


def is_left_by_namesake(obj: Object, owner: Object) -> bool:
    """Returns whether an owner of this kind and name controlled the object and is gone: there is only one at a time."""
    ref = controller_of(obj)
    if ref is None or ref.get("uid") == uid_of(owner):
        return False
    group = owner["apiVersion"].rpartition("/")[0]
    theirs = (str(ref.get("apiVersion", "")).rpartition("/")[0], ref.get("kind"), ref.get("name"))
    return theirs == (group, owner["kind"], name_of(owner))


def is_controlled_by(obj: Object, uid: str) -> bool:
    ref = controller_of(obj)
    return ref is not None and bool(uid) and ref.get("uid") == uid
