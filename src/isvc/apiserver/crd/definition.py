"""CustomResourceDefinitions themselves: their defaults, their rules, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from isvc.apiserver.builtin.base import BuiltIn
from isvc.apiserver.crd.acceptance import APPROVAL, condition, is_approved, is_protected, next_status, storage_versions
from isvc.apiserver.crd.structure import check_structure
from isvc.apiserver.field_errors import duplicate, forbidden, invalid, not_supported, required
from isvc.apiserver.objects.names import dns_1035, subdomain
from isvc.apiserver.request import User
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import Object, annotations_of, dig, name_of

INSTANCES_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


class Definitions(BuiltIn):
    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        names = spec["names"]
        if not names.get("singular"):
            names["singular"] = names.get("kind", "").lower()
        if not names.get("listKind") and names.get("kind"):
            names["listKind"] = names["kind"] + "List"
        status = obj.get("status") or {}
        if "storedVersions" in status and not status["storedVersions"]:
            status["storedVersions"] = storage_versions(obj)
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_for_create(self, obj: Object, user: User) -> None:
        obj["status"] = next_status(obj, {}, self.claims.names.names_of_others(obj))

    def begin_deletion(self, obj: Object) -> bool:
        """Lets the objects of the kind go first."""
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if INSTANCES_FINALIZER not in finalizers:
            finalizers.append(INSTANCES_FINALIZER)
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        conditions = obj.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [each for each in conditions if each["type"] != "Terminating"]
        conditions.append(condition("Terminating", "True", "InstanceDeletionPending", message))
        return True

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        if not subresource:
            new["status"] = next_status(new, old.get("status") or {}, self.claims.names.names_of_others(new))

    def validate_create(self, obj: Object) -> Sequence[FieldError]:
        return list(_check(obj, None))

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        return [] if subresource else [*_check(new, old), *_check_unchanged(new, old)]


def _check(crd: Object, old: Object | None) -> Iterator[FieldError]:
    spec = crd["spec"]
    names, group = spec["names"], spec.get("group", "")
    if name_of(crd) != f"{names.get('plural')}.{group}":
        yield invalid("metadata.name", name_of(crd), 'must be spec.names.plural+"."+spec.group')
    yield from _check_approval(crd, group)
    if not group:
        yield required("spec.group")
    elif subdomain(group):
        yield invalid("spec.group", group, ",".join(subdomain(group)))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, words)
    yield from _check_names(names)
    yield from _check_versions(spec, old["spec"] if old else None)
    yield from _check_conversion(spec.get("conversion") or {})


def _check_approval(crd: Object, group: str) -> Iterator[FieldError]:
    mark = annotations_of(crd).get(APPROVAL, "")
    if not is_protected(group) or is_approved(mark) or mark.startswith("unapproved"):
        return
    path, words = f"metadata.annotations[{APPROVAL}]", f'protected groups must have approval annotation "{APPROVAL}"'
    if mark:
        words = f'{words} with either a URL or a reason starting with "unapproved", {_SEE}'
        yield invalid(path, mark, words)
    else:
        yield required(path, f"{words}, {_SEE}")


def _check_names(names: Object) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        value = str(names.get(key) or "")
        if not value:
            yield required(f"spec.names.{key}")
        elif key in ("plural", "singular") and dns_1035(value):
            yield invalid(f"spec.names.{key}", value, ",".join(dns_1035(value)))
        elif dns_1035(value.lower()):
            words = "may have mixed case, but should otherwise match: " + ",".join(dns_1035(value.lower()))
            yield invalid(f"spec.names.{key}", value, words)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if dns_1035(value):
                yield invalid(f"spec.names.{key}[{index}]", value, ",".join(dns_1035(value)))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["kind"], "kind and listKind may not be the same")


def _check_versions(spec: Object, old: Object | None) -> Iterator[FieldError]:
    versions = spec.get("versions") or []
    schemas = [(each.get("schema") or {}).get("openAPIV3Schema") for each in versions]
    shared = len(schemas) > 0 and all(each is not None and each == schemas[0] for each in schemas)
    known = {each["name"]: each.get("schema") for each in (old or {}).get("versions") or ()}
    for index, (version, schema) in enumerate(zip(versions, schemas, strict=True)):
        path = f"spec.versions[{index}]"
        if dns_1035(version.get("name", "")):
            yield invalid(f"{path}.name", version.get("name", ""), ",".join(dns_1035(version["name"])))
        if schema is None:
            yield required(f"{path}.schema.openAPIV3Schema")
        elif known.get(version.get("name")) != version.get("schema") and not (shared and index):
            where = "spec.validation" if shared else f"{path}.schema"
            yield from check_structure(schema, f"{where}.openAPIV3Schema")
        outer = "spec" if len(versions) == 1 else path
        yield from _check_scale((version.get("subresources") or {}).get("scale"), f"{outer}.subresources.scale")
        for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _check_column(column, f"{outer}.additionalPrinterColumns[{at}]")
        yield from _check_selectable(version.get("selectableFields") or [], schema or {}, f"{outer}.selectableFields")
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            words = "can only be set for deprecated versions"
            yield invalid(f"{path}.deprecationWarning", version["deprecationWarning"], words)
    if len({each.get("name") for each in versions}) != len(versions):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _check_selectable(fields: list[Object], schema: Object, path: str) -> Iterator[FieldError]:
    """Checks that a selectable field is a single value of a plain type that the schema knows, and is named once."""
    seen = set()
    for index, field in enumerate(fields):
        where, json_path = f"{path}[{index}].jsonPath", str(field.get("jsonPath") or "")
        if not json_path:
            yield required(where)
        elif json_path in seen:
            yield duplicate(where, json_path)
        elif problem := _unselectable(json_path, schema):
            yield invalid(where, json_path, problem)
        seen.add(json_path)


def _unselectable(json_path: str, schema: Object) -> str:
    if not json_path.startswith("."):
        return f"is an invalid path: expected [ or . but got: {re.split(r'[.[]', json_path)[0]}"
    if re.search(r"\[\d+\]", json_path):
        return "is an invalid path: array notation is not allowed"
    found = dig(schema, *(part for step in json_path[1:].split(".") for part in ("properties", step)))
    if not isinstance(found, dict):
        return "is an invalid path: does not refer to a valid field"
    if found.get("type") not in ("string", "boolean", "integer"):
        words = "must point to a field of type string, boolean or integer."
        return f"{words} Enum string fields and strings with formats are allowed."
    return ""


def _check_column(column: Object, path: str) -> Iterator[FieldError]:
    kinds = ("boolean", "date", "integer", "number", "string")
    if not column.get("name"):
        yield required(f"{path}.name")
    if not column.get("type"):
        yield required(f"{path}.type", f"must be one of {','.join(kinds)}")
    elif column["type"] not in kinds:
        yield invalid(f"{path}.type", column["type"], f"must be one of {','.join(kinds)}")
    if column.get("format") and column["format"] not in _FORMATS:
        yield invalid(f"{path}.format", column["format"], f"must be one of {','.join(_FORMATS)}")
    if not column.get("jsonPath"):
        yield required(f"{path}.JSONPath")
    elif not column["jsonPath"].startswith("."):
        yield invalid(f"{path}.JSONPath", column["jsonPath"], "must be a simple json path starting with .")


def _check_scale(scale: Object | None, path: str) -> Iterator[FieldError]:
    if scale is None:
        return
    for key, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value = str(scale.get(key) or "")
        if not value:
            yield required(f"{path}.{key}")
        elif not value.startswith(root):
            yield invalid(f"{path}.{key}", value, f"should be a json path under {root[:-1]}")


def _check_conversion(conversion: Object) -> Iterator[FieldError]:
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif strategy == "None" and webhook:
        words = "should not be set when strategy is not set to Webhook"
        if webhook.get("clientConfig"):
            yield forbidden("spec.conversion.webhookClientConfig", words)
        if webhook.get("conversionReviewVersions"):
            yield forbidden("spec.conversion.conversionReviewVersions", words)
    elif strategy == "Webhook":
        client = (webhook or {}).get("clientConfig")
        if client is None:
            yield required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook")
        elif ("url" in client) == ("service" in client):
            yield required("spec.conversion.webhookClientConfig", "exactly one of url or service is required")
        if not (webhook or {}).get("conversionReviewVersions"):
            yield required("spec.conversion.conversionReviewVersions")


def _check_unchanged(new: Object, old: Object) -> Iterator[FieldError]:
    for path in ("scope", "group", "names.kind", "names.plural"):
        outer, _, inner = path.rpartition(".")
        after, before = new["spec"], old["spec"]
        if outer:
            after, before = after[outer], before[outer]
        if after.get(inner) != before.get(inner):
            yield invalid(f"spec.{path}", after.get(inner), "field is immutable")
    listed = {each.get("name") for each in new["spec"].get("versions") or ()}
    for index, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in listed:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from"
                " status.storedVersions"
            )
            yield invalid(f"status.storedVersions[{index}]", name, words)
