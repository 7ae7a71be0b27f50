"""ObjectMeta, which every kind shares: what the server fills in, what it protects, what it refuses."""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from isvc.apiserver.field_errors import OMITTED, forbidden, invalid, required, too_long
from isvc.apiserver.objects import names
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import Object
from isvc.kube.selectors import is_label_key, is_label_value
from isvc.kube.timestamps import timestamp

MAX_ANNOTATIONS = 256 << 10
# Kubernetes leaves out vowels and look-alikes, so that no generated name spells a word.
NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
MAX_GENERATED = 63
STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")

NAME_RULES: dict[str, Callable[[str], list[str]]] = {
    "subdomain": names.subdomain,
    "label": names.dns_label,
    "label1035": names.dns_1035,
    "path": names.path_segment,
    "address": names.ip_address,
}


def now() -> str:
    return timestamp(datetime.now(UTC))


def new_uid() -> str:
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


def generate_name(base: str) -> str:
    suffix = "".join(secrets.choice(NAME_LETTERS) for _ in range(5))
    return base[: MAX_GENERATED - 5] + suffix


def prepare_for_create(obj: Object, namespace: str) -> None:
    """Fills in what only the server may say about a new object."""
    meta = obj["metadata"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion"):
        meta.pop(field, None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generate_name(meta["generateName"])
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = now()
    tidy(meta)


def prepare_for_update(new: Object, old: Object) -> None:
    """Keeps what only the server may change."""
    fresh, kept = new["metadata"], old["metadata"]
    for field in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        if field in kept:
            fresh[field] = kept[field]
        else:
            fresh.pop(field, None)
    if "generateName" in kept:
        fresh.setdefault("generateName", kept["generateName"])
    fresh.pop("selfLink", None)
    tidy(fresh)


def tidy(meta: dict[str, Any]) -> None:
    """Drops empty lists and maps, which are not stored."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
        if field in meta and not meta[field]:
            del meta[field]


def check_types(obj: Object) -> str:
    """Returns what is wrong with the JSON types in metadata, or nothing. Everything after this may rely on them."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        return "metadata must be an object"
    for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(meta.get(field, ""), str):
            return f"metadata.{field} must be a string"
    for field in ("labels", "annotations"):
        value = meta.get(field) or {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            return f"metadata.{field} must map strings to strings"
    finalizers = meta.get("finalizers") or []
    if not isinstance(finalizers, list) or not all(isinstance(f, str) for f in finalizers):
        return "metadata.finalizers must be a list of strings"
    for field in ("ownerReferences", "managedFields"):
        value = meta.get(field) or []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            return f"metadata.{field} must be a list of objects"
    return ""


def validate(obj: Object, rule: str, namespaced: bool) -> list[FieldError]:
    """Runs the checks that every write goes through."""
    meta = obj["metadata"]
    errors: list[FieldError] = []
    name = meta.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, why) for why in NAME_RULES[rule](name)]
    if namespaced and not meta.get("namespace"):
        errors.append(required("metadata.namespace"))
    if meta.get("labels"):
        errors += _label_errors(meta["labels"])
    if meta.get("annotations"):
        errors += _annotation_errors(meta["annotations"])
    if meta.get("ownerReferences"):
        errors += _owner_errors(meta["ownerReferences"])
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        field = f"metadata.finalizers[{index}]"
        problems = names.qualified_name(finalizer)
        if not problems and "/" not in finalizer and finalizer not in STANDARD_FINALIZERS and not _is_custom(obj):
            problems = ["name is neither a standard finalizer name nor is it fully qualified"]
        errors += [invalid(field, finalizer, why) for why in problems]
    return errors


def _is_custom(obj: Object) -> bool:
    """Returns whether the kind is custom, whose finalizers need no domain: Kubernetes asks it of its own kinds only."""
    group = obj.get("apiVersion", "").rpartition("/")[0]
    return "." in group and not group.endswith(".k8s.io")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    fresh, kept = new["metadata"], old["metadata"]
    errors = [
        invalid(f"metadata.{field}", fresh.get(field, ""), "field is immutable")
        for field in ("name", "namespace")
        if fresh.get(field, "") != kept.get(field, "")
    ]
    added = sorted(set(fresh.get("finalizers") or ()) - set(kept.get("finalizers") or ()))
    if kept.get("deletionTimestamp") and added:
        listed = ", ".join(f'"{each}"' for each in added)
        why = "no new finalizers can be added if the object is being deleted, found new finalizers"
        errors.append(forbidden("metadata.finalizers", f"{why} []string{{{listed}}}"))
    return errors


def _label_errors(labels: dict[str, str]) -> list[FieldError]:
    errors = []
    for key, value in labels.items():
        if not is_label_key(key):
            errors += [invalid("metadata.labels", key, why) for why in names.qualified_name(key)]
        if not is_label_value(value):
            errors += [invalid("metadata.labels", value, why) for why in names.label_value(value)]
    return errors


def _annotation_errors(annotations: dict[str, str]) -> list[FieldError]:
    errors = []
    for key in annotations:
        if not is_label_key(key.lower()):
            errors += [invalid("metadata.annotations", key, why) for why in names.qualified_name(key.lower())]
    if sum(len(key) + len(value) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        errors.append(too_long("metadata.annotations", MAX_ANNOTATIONS))
    return errors


def _owner_errors(owners: list[Object]) -> list[FieldError]:
    errors = []
    for owner in owners:
        field = "metadata.ownerReferences"
        if not owner.get("apiVersion"):
            errors.append(invalid(f"{field}.apiVersion", "", "version must not be empty"))
        errors += [
            invalid(f"{field}.{each}", "", f"{each} must not be empty")
            for each in ("kind", "name", "uid")
            if not owner.get(each)
        ]
    controllers = [owner for owner in owners if owner.get("controller") is True]
    if len(controllers) > 1:
        listed = " and ".join(f"{each.get('kind')} {each.get('name')}" for each in controllers[:2])
        why = f'Only one reference can have Controller set to true. Found "true" in references for {listed}'
        errors.append(invalid("metadata.ownerReferences", OMITTED, why))
    return errors
