"""managedFields as a value: which manager has which fields, by which operation, since when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from isvc.kube.fields.fieldset import FieldSet, Path, path_text
from isvc.kube.objects import Object

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_MOST_UPDATERS: Final = 10
_OLD_UPDATERS: Final = "ancient-changes"


class Manager(NamedTuple):
    """Who a manager is. One who applies is the same in every version of the API."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class Share:
    """What a manager manages."""

    fields: FieldSet
    api_version: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that an apply would take from another manager."""

    manager: Manager
    path: Path

    @property
    def field(self) -> str:
        return path_text(self.path)


class ApplyConflict(Exception):
    """The apply would change fields that others manage; nothing was done."""

    def __init__(self, conflicts: list[FieldConflict]) -> None:
        self.conflicts = conflicts
        super().__init__(_message(conflicts))

    @property
    def causes(self) -> list[Object]:
        """Returns the conflicts as the details of a `Status` list them."""
        return [
            {"reason": "FieldManagerConflict", "message": f"conflict with {each.manager}", "field": each.field}
            for each in self.conflicts
        ]


def _message(conflicts: list[FieldConflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].manager}: {conflicts[0].field}"
    fields: dict[Manager, list[str]] = {}
    for each in conflicts:
        fields.setdefault(each.manager, []).append(f"- {each.field}")
    lines = [line for manager in sorted(fields) for line in (f"conflicts with {manager}:", *fields[manager])]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


class Managers(dict[Manager, Share]):
    """All managers of one object."""

    @classmethod
    def parse(cls, entries: Any) -> Managers:
        """Reads managedFields; as in the API server, one bad entry makes all of it unreadable, that is empty."""
        try:
            return cls(map(_parse, entries or ()))
        except (AttributeError, KeyError, TypeError, ValueError):
            return cls()

    def entries(self) -> list[Object]:
        """Returns the managers as managedFields lists them."""
        return sorted((_entry(manager, share) for manager, share in self.items() if share.fields), key=_order)

    def updaters(self) -> list[Manager]:
        return [manager for manager in self if manager.operation == UPDATE]

    def others(self, workflow: Manager | None) -> Iterator[tuple[Manager, Share]]:
        return ((manager, share) for manager, share in sorted(self.items()) if manager != workflow)

    def without(self, fields: FieldSet, *, except_of: Manager | None) -> Managers:
        """Takes these fields from everybody but one manager."""
        kept = Managers(self)
        if fields:
            for manager, share in self.others(except_of):
                kept[manager] = replace(share, fields=share.fields - fields)
        return Managers({manager: share for manager, share in kept.items() if share.fields or manager == except_of})

    def cap(self) -> Managers:
        """Throws the oldest updates together, so that no more than ten entries come of updates."""
        surplus = len(self.updaters()) - _MOST_UPDATERS
        if surplus <= 0:
            return self
        kept = Managers(self)
        first: dict[str, Manager] = {}
        for manager in sorted(self.updaters(), key=lambda each: (self[each].time, each)):
            if surplus <= 0:
                break
            share = self[manager]
            if share.api_version not in first:
                first[share.api_version] = manager
                continue
            bucket = Manager(_OLD_UPDATERS, UPDATE, share.api_version)
            if bucket not in kept:
                kept[bucket] = kept.pop(first[share.api_version])
            kept[bucket] = replace(share, fields=share.fields | kept[bucket].fields)
            if manager != bucket:
                del kept[manager]
            surplus -= 1
        return kept


def is_reset(entries: Any) -> bool:
    """Returns whether a client asks to forget all managers: an empty list, or one empty entry."""
    return isinstance(entries, list) and (not entries or (len(entries) == 1 and not entries[0]))


def _parse(entry: Mapping[str, Any]) -> tuple[Manager, Share]:
    operation, api_version = entry["operation"], entry["apiVersion"]
    if operation not in (APPLY, UPDATE) or not api_version or entry["fieldsType"] != "FieldsV1":
        raise ValueError("unreadable managedFields entry")
    identity = Manager(
        str(entry.get("manager", "")),
        operation,
        "" if operation == APPLY else api_version,
        str(entry.get("subresource", "")),
    )
    return identity, Share(FieldSet.parse(entry.get("fieldsV1")), api_version, str(entry.get("time") or ""))


def _entry(manager: Manager, share: Share) -> Object:
    entry: Object = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": share.api_version,
        "time": share.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": share.fields.fields_v1(),
        "subresource": manager.subresource,
    }
    return {key: value for key, value in entry.items() if value != ""}


def _order(entry: Object) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time", ""),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )
