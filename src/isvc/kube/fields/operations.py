"""The two kinds of write, seen from the managers of fields: an update, and an apply."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import orjson

from isvc.kube.fields.compare import Comparison, compare
from isvc.kube.fields.fieldset import FieldSet
from isvc.kube.fields.managers import APPLY, UPDATE, ApplyConflict, FieldConflict, Manager, Managers, Share, is_reset
from isvc.kube.fields.merge import add_named_fields, merge, remove
from isvc.kube.fields.shape import blank, fields_of, managed_part, unmanaged_metadata, with_metadata
from isvc.kube.objects import LAST_APPLIED, Object, annotations_of, last_applied, uid_of
from isvc.kube.patch.merge_patch import same
from isvc.kube.schemas import Schema

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"
_PRECONDITIONS: Final = frozenset({"resourceVersion", "uid"})


def track(
    new: Object,
    live: Object | None,
    schema: Schema | None,
    *,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    ignore: tuple[str, ...] = (),
) -> list[Object]:
    """Returns managedFields after a create, update or patch. Fields whose value changes go over to the manager.

    `ignore` names fields of the object (`status`) that this write cannot set.
    """
    managers = _managers_of_update(new, live, from_live=bool(subresource))
    if live is not None and uid_of(live) and not managers:
        return []  # its managers were given up, or date from before there were any
    writer = Manager(manager or "unknown", UPDATE, api_version, subresource)
    return _track_update(managers, new, live, with_metadata(schema), writer, now, ignore).cap().entries()


def _managers_of_update(new: Object, live: Object | None, *, from_live: bool) -> Managers:
    sent = (new.get("metadata") or {}).get("managedFields")
    kept = ((live or {}).get("metadata") or {}).get("managedFields")
    if from_live:
        return Managers.parse(kept)
    if is_reset(sent):
        return Managers()
    return Managers.parse(sent) or Managers.parse(kept)


def _track_update(
    managers: Managers,
    new: Object,
    live: Object | None,
    schema: Schema,
    writer: Manager,
    now: str,
    ignore: tuple[str, ...],
) -> Managers:
    before = managed_part(live) if live is not None else blank(schema, writer.api_version)
    change = _ignoring(compare(before, managed_part(new), schema), ignore)
    taken = change.added | change.modified
    managers = managers.without(taken | change.removed, except_of=None)
    if taken:
        previous = managers.get(writer)
        fields = taken | previous.fields if previous else taken
        managers[writer] = Share(fields, writer.api_version, now)
    return managers


def _ignoring(change: Comparison, names: tuple[str, ...]) -> Comparison:
    if not names:
        return change
    return Comparison(change.added.without(names), change.removed.without(names), change.modified.without(names))


def apply(
    live: Object | None,
    applied: Object,
    schema: Schema | None,
    *,
    manager: str,
    api_version: str,
    now: str,
    force: bool = False,
    subresource: str = "",
    ignore: tuple[str, ...] = (),
    unset: Object | None = None,
) -> Object:
    """Returns the object after a server-side apply, with its managedFields. Raises ApplyConflict unless `force` is
    given.

    An apply that changes nothing gives back an object equal to the live one, times of managers included. `unset` is an
    object of the kind about which nothing was said, where that is known better than from the schema.
    """
    shape = with_metadata(schema)
    managers = Managers.parse(((live or {}).get("metadata") or {}).get("managedFields"))
    if live is not None and not managers:
        first = Manager(_BEFORE_FIRST_APPLY, UPDATE, api_version)
        managers = _track_update(Managers(), live, unset, shape, first, now, ())
    writer = Manager(manager or "unknown", APPLY, "", subresource)
    before = managed_part(live) if live is not None else blank(shape, api_version)
    last = managers.get(writer)
    claimed = fields_of(applied, schema).without(ignore)
    managers = Managers(managers)
    managers[writer] = Share(claimed, api_version, last.time if last else "")
    merged = merge(managed_part(live or {}), managed_part(applied), shape)
    merged = _prune(merged, managers, last, shape)
    change = _ignoring(compare(before, merged, shape), ignore)
    taken = change.added | change.modified
    conflicts = [
        FieldConflict(other, path)
        for other, share in managers.others(writer)
        for path in (share.fields & taken).paths()
    ]
    if not force and conflicts and manager == _KUBECTL and live is not None:
        conflicts = _not_from_client_side_apply(conflicts, live, schema)
    if not force and conflicts:
        raise ApplyConflict(conflicts)
    managers = managers.without(taken | change.removed, except_of=writer)
    return _finish(live, applied, merged, managers, writer, now)


def _prune(merged: Object, managers: Managers, last: Share | None, schema: Schema) -> Object:
    """Removes what the manager applied last time and does not now, unless another manages it as well."""
    if last is None or not last.fields:
        return merged
    before = add_named_fields(last.fields, schema)
    owned = FieldSet()
    for share in managers.values():
        owned |= share.fields
    present = add_named_fields(fields_of(merged, schema), schema)
    bare = remove(merged, before, schema)
    kept = add_named_fields(fields_of(bare, schema), schema) | add_named_fields(owned, schema)
    with_owned = remove(merged, present - kept, schema)
    left = add_named_fields(fields_of(with_owned, schema), schema)
    return {"metadata": {}, **remove(merged, (present - left) & before, schema)}


def _finish(
    live: Object | None, applied: Object, merged: Object, managers: Managers, writer: Manager, now: str
) -> Object:
    """Puts merged fields beside those that only the API server keeps. The writer's time moves if anything else did."""
    metadata = {**unmanaged_metadata(live or applied), **merged["metadata"]}
    metadata |= {key: value for key, value in (applied.get("metadata") or {}).items() if key in _PRECONDITIONS}
    result: Object = {"apiVersion": applied.get("apiVersion"), "kind": applied.get("kind"), **merged}
    result["metadata"] = metadata
    if writer.name == _KUBECTL and LAST_APPLIED in annotations_of(result):
        metadata["annotations"] = {**metadata["annotations"], LAST_APPLIED: _last_applied_text(applied)}
    metadata["managedFields"] = managers.entries()
    if writer in managers and (live is None or not same(result, {**live, "apiVersion": result["apiVersion"]})):
        managers[writer] = replace(managers[writer], time=now)
        metadata["managedFields"] = managers.entries()
    return result


def _not_from_client_side_apply(
    conflicts: list[FieldConflict], live: Object, schema: Schema | None
) -> list[FieldConflict]:
    """Lets kubectl move from client-side to server-side apply without conflicts on what it applied itself before."""
    previous = last_applied(live)
    if previous is None or previous.get("apiVersion") != live.get("apiVersion"):
        return conflicts
    change = compare(managed_part(previous), managed_part(live), with_metadata(schema))
    own = fields_of(previous, schema) - change.modified - change.added - change.removed
    return [conflict for conflict in conflicts if conflict.path not in own]


def _last_applied_text(applied: Object) -> str:
    metadata = {key: value for key, value in (applied.get("metadata") or {}).items() if key != "managedFields"}
    annotations = {key: value for key, value in annotations_of(applied).items() if key != LAST_APPLIED}
    text = orjson.dumps({**applied, "metadata": {**metadata, "annotations": annotations}}, option=orjson.OPT_SORT_KEYS)
    return text.decode() + "\n"
