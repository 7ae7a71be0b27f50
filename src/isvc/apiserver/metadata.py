"""ObjectMeta, which every kind shares: what the server fills in, what it protects, what it refuses."""

from __future__ import annotations

import os
import re
import secrets
import uuid
from datetime import UTC, datetime
from typing import Any

from isvc.apiserver.strategy import FieldError
from isvc.kube.objects import Object
from isvc.kube.selectors import is_label_key, is_label_value

MAX_ANNOTATIONS = 256 << 10
# Kubernetes leaves out vowels and look-alikes, so that no generated name spells a word.
NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
MAX_GENERATED = 63

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_DNS_1123_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_1123_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_DNS_1035_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
#: rule -> (longest, pattern, what it demands)
NAME_RULES: dict[str, tuple[int, re.Pattern[str], str]] = {
    "subdomain": (253, _SUBDOMAIN, _DNS_1123_SUBDOMAIN),
    "label": (63, _LABEL, _DNS_1123_LABEL),
    "label1035": (63, _LABEL_1035, _DNS_1035_LABEL),
}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
    for field in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ):
        if field == "generateName" and field in fresh:
            continue
        if field in kept:
            fresh[field] = kept[field]
        elif field != "generateName":
            fresh.pop(field, None)
    fresh.pop("selfLink", None)
    tidy(fresh)


def tidy(meta: dict[str, Any]) -> None:
    """Empty lists and maps are not stored."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
        if field in meta and not meta[field]:
            del meta[field]


def check_types(obj: Object) -> str:
    """What is wrong with the JSON types in metadata, or nothing. Everything after this may rely on them."""
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


def name_errors(name: str, rule: str, field: str = "metadata.name") -> list[FieldError]:
    if rule == "path":
        bad = name in (".", "..") or "/" in name or "%" in name
        why = "may not be '.' or '..' or contain '/' or '%'"
        return [FieldError("FieldValueInvalid", field, f'Invalid value: "{name}": {why}')] if bad else []
    longest, pattern, demand = NAME_RULES[rule]
    errors = []
    if len(name) > longest:
        errors.append(_invalid(field, name, f"must be no more than {longest} characters"))
    if not pattern.fullmatch(name):
        errors.append(_invalid(field, name, demand))
    return errors


def validate(obj: Object, rule: str, namespaced: bool) -> list[FieldError]:
    """The checks that every write goes through."""
    meta = obj["metadata"]
    errors: list[FieldError] = []
    name = meta.get("name", "")
    if not name:
        errors.append(
            FieldError("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")
        )
    else:
        errors += name_errors(name, rule)
    if namespaced and not meta.get("namespace"):
        errors.append(FieldError("FieldValueRequired", "metadata.namespace", "Required value"))
    if meta.get("labels"):
        errors += _label_errors(meta["labels"])
    if meta.get("annotations"):
        errors += _annotation_errors(meta["annotations"])
    if meta.get("ownerReferences"):
        errors += _owner_errors(meta["ownerReferences"])
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        if not is_label_key(finalizer):
            errors.append(_invalid(f"metadata.finalizers[{index}]", finalizer, _QUALIFIED))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    fresh, kept = new["metadata"], old["metadata"]
    errors = []
    for field in ("name", "namespace"):
        if fresh.get(field, "") != kept.get(field, ""):
            errors.append(_invalid(f"metadata.{field}", fresh.get(field, ""), "field is immutable"))
    if kept.get("deletionTimestamp"):
        added = sorted(set(fresh.get("finalizers") or ()) - set(kept.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{each}"' for each in added)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers"
            message = f"Forbidden: {why} []string{{{listed}}}"
            errors.append(FieldError("FieldValueForbidden", "metadata.finalizers", message))
    return errors


def _label_errors(labels: dict[str, str]) -> list[FieldError]:
    errors = []
    for key, value in labels.items():
        if not is_label_key(key):
            errors.append(_invalid("metadata.labels", key, _QUALIFIED))
        if not is_label_value(value):
            why = _LABEL_VALUE if len(value) <= 63 else "must be no more than 63 characters"
            errors.append(_invalid("metadata.labels", value, why))
    return errors


def _annotation_errors(annotations: dict[str, str]) -> list[FieldError]:
    errors = [_invalid("metadata.annotations", key, _QUALIFIED) for key in annotations if not is_label_key(key.lower())]
    if sum(len(key) + len(value) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        message = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        errors.append(FieldError("FieldValueTooLong", "metadata.annotations", message))
    return errors


def _owner_errors(owners: list[Object]) -> list[FieldError]:
    errors = []
    controllers = 0
    for index, owner in enumerate(owners):
        field = f"metadata.ownerReferences[{index}]"
        if not owner.get("apiVersion"):
            errors.append(_invalid(f"{field}.apiVersion", owner.get("apiVersion", ""), "version must not be empty"))
        for required in ("kind", "name", "uid"):
            if not owner.get(required):
                errors.append(_invalid(f"{field}.{required}", "", f"{required} must not be empty"))
        controllers += owner.get("controller") is True
    if controllers > 1:
        why = "Only one reference can have Controller set to true"
        errors.append(_invalid("metadata.ownerReferences", "", why))
    return errors


def _invalid(field: str, value: str, why: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, f'Invalid value: "{value}": {why}')
