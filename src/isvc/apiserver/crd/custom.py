"""The strategy of one version of a custom resource: everything it does is in its CustomResourceDefinition."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import orjson

from isvc.apiserver.admission.caller import Caller
from isvc.apiserver.crd.conversion import convert_by_webhook
from isvc.apiserver.crd.defaults import apply_defaults
from isvc.apiserver.crd.invariants import check_invariants
from isvc.apiserver.crd.prune import prune
from isvc.apiserver.crd.rules import Rules
from isvc.apiserver.crd.validate import validate
from isvc.apiserver.crd.values import whole_numbers
from isvc.apiserver.field_errors import invalid
from isvc.apiserver.request import User
from isvc.apiserver.resources.strategy import FieldError, Strategy
from isvc.kube.builtin.shape import WrongType, shape_metadata
from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object, deep_copy, dig
from isvc.kube.schemas import Schema, definition

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TEXT: Schema = {"type": "string"}
#: Errors after which rules are not asked: they could not rely on the values they see.
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)


_MOST = 2**31 - 1
_GO_TYPES = {str: "string", bool: "bool", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}


class Custom(Strategy):
    unconditional_update = False

    def __init__(self, crd: Object, version: Object, caller: Caller | None) -> None:
        self._crd = crd
        self._caller = caller
        self.own_schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self._rules = Rules(self.own_schema)
        self._preserve = bool(crd["spec"].get("preserveUnknownFields"))
        self._scale = (version.get("subresources") or {}).get("scale")
        if "status" not in (version.get("subresources") or {}):
            self.uncounted = ("apiVersion", "kind", "metadata")

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        """Returns the schema with what every object has: apiVersion, kind and typed metadata."""
        every = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": definition(_META)}
        return {**self.own_schema, "properties": {**(self.own_schema.get("properties") or {}), **every}}

    @cached_property
    def fingerprint(self) -> str:
        """Returns a text that changes whenever the schema does."""
        return hashlib.sha256(orjson.dumps(self.own_schema)).hexdigest()

    def decode(self, obj: Object, unknown: list[str]) -> Object:
        try:
            obj["metadata"] = shape_metadata(obj.get("metadata"), unknown)
        except WrongType as error:
            raise BadRequest(f"error decoding metadata: {error}") from None
        if not self._preserve:
            prune(obj, self.own_schema, unknown)
        apply_defaults(obj, self.own_schema)
        whole_numbers(obj)
        return obj

    def read(self, obj: Object) -> Object:
        apply_defaults(obj, self.own_schema)
        return obj

    def prepare_for_create(self, obj: Object, user: User) -> None:
        apply_defaults(obj, self.own_schema)  # of a status too, where there was one that may not be set

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        apply_defaults(new, self.own_schema)

    def validate_create(self, obj: Object) -> Sequence[FieldError]:
        errors = validate(obj, self.own_schema) + check_scale(obj, self._scale)
        errors += check_invariants(obj, self.own_schema)
        return errors + self._check_rules(obj, None, errors)

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        errors = validate(new, self.own_schema, old) + check_scale(new, self._scale)
        changed = {key: value for key, value in new.items() if old.get(key) != value}
        found = check_invariants(changed, self.own_schema)
        if found and not check_invariants(old, self.own_schema):
            errors += found
        return errors + self._check_rules(new, old, errors)

    def _check_rules(self, obj: Object, old: Object | None, errors: list[FieldError]) -> list[FieldError]:
        if not self._rules.exist:
            return []
        if any(error.reason in _BLOCKING for error in errors):
            return [invalid("<nil>", None, _UNCHECKED)]
        return self._rules.check(obj, old)

    async def convert(self, objects: list[Object], api_version: str) -> list[Object]:
        spec = self._crd["spec"]
        if all(each.get("apiVersion") == api_version for each in objects):
            return objects
        if (spec.get("conversion") or {}).get("strategy") == "Webhook":
            assert self._caller, "a server that serves webhook conversion passes a caller"
            converted = await convert_by_webhook(self._caller, self._crd, objects, api_version)
        else:
            converted = [{**each, "apiVersion": api_version} for each in objects]
        stored = next(each for each in spec["versions"] if each.get("storage"))
        if api_version == f"{spec['group']}/{stored['name']}":
            return [self._as_stored(each, stored) for each in converted]
        return converted

    def _as_stored(self, obj: Object, version: Object) -> Object:
        """Returns what storage makes of an object: the stored version knows its own fields and defaults."""
        kept = deep_copy(obj)
        schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        if not self._preserve:
            prune(kept, schema, [])
        apply_defaults(kept, schema)
        return kept


def check_scale(obj: Object, scale: Object | None) -> list[FieldError]:
    if scale is None:
        return []
    paths = (scale["specReplicasPath"], scale["statusReplicasPath"])
    errors = [each for path in paths for each in _check_number(obj, path)]
    selector = scale.get("labelSelectorPath")
    if selector:
        value = dig(obj, *selector.lstrip(".").split("."))
        if value is not None and not isinstance(value, str):
            errors.append(invalid(selector, "", _wrong_type(selector, value, "string")))
    return errors


def _check_number(obj: Object, path: str) -> list[FieldError]:
    value = dig(obj, *path.lstrip(".").split("."))
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int):
        return [invalid(path, 0, _wrong_type(path, value, "int64"))]
    if value < 0:
        return [invalid(path, value, "should be a non-negative integer")]
    if value > _MOST:
        return [invalid(path, value, f"should be less than or equal to {_MOST}")]
    return []


def _wrong_type(path: str, value: Any, expected: str) -> str:
    found = _GO_TYPES.get(type(value), "int64")
    return f"{path} accessor error: {value} is of the type {found}, expected {expected}"
